"""A terminal shows what takes longer than a second; a pipe shows nothing."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor

import stillgraph as sg
from stillgraph.core.logs import configure
from stillgraph.core.progress import Phase, doing, listening, step
from stillgraph.report import progress
from stillgraph.report.progress import Line, showing


def doubled(x: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x * 2 if x.max() > 3 else x + 1
    return x


def _terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def _written(console: Console) -> str:
    file: Any = console.file
    text: str = file.getvalue()
    return text


def test_a_line_says_nothing_in_the_first_second() -> None:
    now = 10.0
    line = Line(clock=lambda: now)
    line.tell(Phase("tracing", "regions", 7, 2))
    assert line.text == ""
    now = 13.0
    assert line.text == "tracing, 2 of 7 regions (3 s, 3 s in all)"
    line.tell(Phase("tracing", "regions", 7, 3))
    assert line.text == "tracing, 3 of 7 regions (3 s, 3 s in all)"
    line.tell(Phase("writing"))
    now = 15.0
    assert line.text == "writing (2 s, 5 s in all)"
    line.tell(None)
    assert line.text == ""


def test_phases_within_phases_are_told() -> None:
    told: list[str] = []
    with listening(lambda phase: told.append(str(phase))), doing("saving"):
        with doing("tracing", "regions", 2):
            step()
        step()
    assert told == ["saving", "tracing, 0 of 2 regions", "tracing, 1 of 2 regions", "saving", "saving", "None"]


def test_a_save_tells_its_phases(tmp_path: Path) -> None:
    told: list[Phase] = []
    with listening(lambda phase: told.append(phase) if phase else None):
        sg.save(doubled, tmp_path / "doubled.pt2", args=(torch.ones(3),))
    phases = list(dict.fromkeys(phase.what for phase in told))
    assert phases == [
        "capturing doubled",
        "trying other sizes",
        "lowering the program",
        "tracing for the file",
        "writing the file",
        "reading it back",
        "checking the file on the example",
    ]
    traced = [phase for phase in told if phase.what == "tracing for the file"]
    assert (traced[-1].done, traced[-1].total) == (4, 4), "each region is traced once"


def test_a_terminal_shows_it_and_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    console = _terminal()
    with showing(True, console), doing("compiling"):
        for _ in range(1000):  # the line is drawn by a thread of its own
            if "compiling" in _written(console):
                break
            time.sleep(0.01)
    assert "compiling" in _written(console)
    assert "\x1b[2K" in _written(console).rpartition("compiling")[2], "the line is taken away"


def test_what_is_quick_shows_nothing() -> None:
    console = _terminal()
    with showing(True, console), doing("compiling"):
        pass
    assert "compiling" not in _written(console)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    console = Console(file=io.StringIO(), force_terminal=not wanted)
    with showing(wanted, console), doing("compiling"):
        pass
    assert _written(console) == ""


def test_the_environment_asks_for_it() -> None:
    assert configure("progress")
    assert not configure("")
    with pytest.raises(ValueError, match=r"no topic is called progres; there are .*progress"):
        configure("progres")
