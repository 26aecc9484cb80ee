"""The demonstration runs and agrees with eager PyTorch."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import pytest
from rich.console import Console

from stillgraph import demo


def _console() -> Console:
    return Console(file=io.StringIO(), width=160, force_terminal=False)


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.slow
def test_every_part_agrees_and_writes_its_files(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("onnxruntime")
    console = _console()
    agrees = demo.run(tmp_path / "new" / "folder", console)
    printed = _printed(console)
    assert agrees, printed
    assert printed.count("✓") == len(demo.PARTS)
    written = {file.name for file in (tmp_path / "new" / "folder").iterdir()}
    assert {"generate.pt2", "gpt2.onnx", "solver.pt2"} <= written
    assert all(name in printed for name in written)


def test_a_missing_package_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARTS", (demo.Part("bert", "BERT", "a step", ("no_such_package",)),))
    console = _console()
    assert not demo.run(tmp_path, console)
    assert "BERT: needs no_such_package" in _printed(console)


def test_a_part_that_fails_does_not_keep_the_others_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def run(part: demo.Part, out: Path) -> None:
        ran.append(part.module)
        raise ValueError("no such thing")

    monkeypatch.setattr(demo.Part, "run", run)
    monkeypatch.setattr(demo, "PARTS", (demo.Part("one", "One", "a"), demo.Part("two", "Two", "b")))
    console = _console()
    assert not demo.run(tmp_path, console)
    assert ran == ["one", "two"]
    assert "One: ValueError: no such thing" in _printed(console)


def test_parts_are_modules_of_the_demonstration() -> None:
    assert all(importlib.util.find_spec(f"stillgraph.demo.{part.module}") for part in demo.PARTS)
