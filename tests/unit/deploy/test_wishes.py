"""Printing and assertions in files: dropped, kept or refused, as is wished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.onnx.onnx_session import run_onnx

X = torch.ones(2)


def talking(x: Tensor) -> Tensor:
    if x.sum() > 1:
        print("large")
        x = x * 2
    assert x.sum() < 10, "too large"
    if x.sum() < 0:
        raise ValueError("negative")
    return x


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_printing_can_be_refused(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.CaptureError, match="prints, logs or warns") as error:
        sg.save(talking, tmp_path / f"talking.{suffix}", args=(X,), prints="refuse")
    assert "test_wishes.py" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_assertions_are_kept_or_dropped(tmp_path: Path) -> None:
    sg.save(talking, tmp_path / "kept.pt2", args=(X,))
    sg.save(talking, tmp_path / "dropped.pt2", args=(X,), assertions="drop")
    kept, dropped = sg.load(tmp_path / "kept.pt2"), sg.load(tmp_path / "dropped.pt2")
    with pytest.raises(AssertionError, match="too large"):
        kept(X * 9)
    torch.testing.assert_close(dropped(X * 9), X * 18)
    assert "the file does not check the original's assertions" in dropped.notes
    with pytest.raises(ValueError, match="negative"):
        dropped(-X)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("a.pt2", {"prints": "keep"}, "prints is 'drop' or 'refuse', not 'keep'"),
        ("a.onnx", {"assertions": "yes"}, "assertions is 'keep', 'drop' or 'return', not 'yes'"),
        ("a.py", {"assertions": "drop"}, "choices for .pt2 and .onnx"),
        ("a.py", {"max_iterations": 3}, "choices for .pt2 and .onnx"),
        ("a.pt2", {"max_iterations": 0}, "max_iterations is a number from 1 on, or a dict of such by line, not 0"),
        ("a.pt2", {"max_iterations": {4: True}}, "or a dict of such by line, not True"),
        ("a.pt2", {"max_iterations": {4: 2}}, "max_iterations: there is no loop at line 4$"),
    ],
)
def test_choices_that_there_are_not(name: str, options: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=text):
        sg.save(talking, tmp_path / name, args=(X,), **options)


# ---- loops
def halved(x: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > 1:
        x = x / 2
        steps += 1
    return x, steps


def doubled(x: Tensor) -> Tensor:
    while x.norm() < 4:
        x = x * 2
    return x


HALVED, DOUBLED = (function.__code__.co_firstlineno + offset for function, offset in ((halved, 2), (doubled, 1)))


def test_a_bounded_file_has_no_loop_and_tells_when_it_wants_one(tmp_path: Path) -> None:
    path = tmp_path / "halved.pt2"
    sg.save(halved, path, args=(X * 2,), max_iterations=3, assertions="drop")
    loaded = sg.load(path)
    for scale in (0.1, 1.0, 3.0, 5.0):
        assert loaded(X * scale)[1] == halved(X * scale)[1]
        assert torch.equal(loaded(X * scale)[0], halved(X * scale)[0])
    with pytest.raises(RuntimeError, match=f"test_wishes.py:{HALVED} takes more than max_iterations=3 iterations$"):
        loaded(X * 9)
    nodes = [node for module in loaded.module.modules() if hasattr(module, "graph") for node in module.graph.nodes]
    assert not [node for node in nodes if "while_loop" in str(node.target) or "cond" in str(node.target)]


def test_a_bounded_onnx_file_fails_where_it_wants_more(tmp_path: Path) -> None:
    path = tmp_path / "halved.onnx"
    sg.save(halved, path, args=(X * 2,), max_iterations=3)
    assert not {node.op_type for node in onnx.load(path).graph.node} & {"Loop", "If", "Scan"}
    for scale in (0.1, 5.0):
        value, steps = run_onnx(path, [X * scale])
        assert steps.item() == halved(X * scale)[1]
        torch.testing.assert_close(value, halved(X * scale)[0])
    with pytest.raises(Exception, match="invalid index"):
        run_onnx(path, [X * 9])


def test_an_example_that_takes_more_says_how_many(tmp_path: Path) -> None:
    with pytest.raises(sg.CaptureError, match="this loop takes 5 iterations for the example arguments, and") as error:
        sg.save(halved, tmp_path / "halved.pt2", args=(X * 20,), max_iterations=3)
    assert "while x.norm() > 1:" in str(error.value)
    assert "Give max_iterations=5 or more" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_entries_have_the_bounds_of_their_lines(tmp_path: Path) -> None:
    path, both = tmp_path / "both.pt2", {"up": doubled, "down": halved}
    given = dict.fromkeys(both, (X,))
    sg.save(both, path, args=given, max_iterations={HALVED: 2, DOUBLED: 3})
    loaded = sg.load(path)
    assert torch.equal(loaded.up(X), doubled(X))
    with pytest.raises(RuntimeError, match="max_iterations=2"):
        loaded.down(X * 9)
    with pytest.raises(RuntimeError, match="max_iterations=3"):
        loaded.up(X / 9)
    with pytest.raises(ValueError, match=f"there is no loop at line 1; there are some at {HALVED}, {DOUBLED}"):
        sg.save(both, path, args=given, max_iterations={1: 2, HALVED: 2, DOUBLED: 3})


def test_what_is_not_masked_is_noted(tmp_path: Path) -> None:
    def grown(x: Tensor) -> Tensor:
        while x.sum() < 6:
            x = torch.cat([x, x[-1:] + 1])
        return x

    sg.save(grown, tmp_path / "grown.pt2", args=(X,), max_iterations=4)
    loaded = sg.load(tmp_path / "grown.pt2")
    assert [note.partition(" has a ")[2] for note in loaded.notes] == [
        "branch for each iteration: what it carries changes its shape"
    ]
    for x in (X, X * 4, X * 0):
        assert torch.equal(loaded(x), grown(x))
