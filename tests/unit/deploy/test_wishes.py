"""Printing and assertions in files: dropped, kept or refused, as is wished."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import stillgraph as sg

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
    ],
)
def test_choices_that_there_are_not(name: str, options: dict[str, str], text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=text):
        sg.save(talking, tmp_path / name, args=(X,), **options)
