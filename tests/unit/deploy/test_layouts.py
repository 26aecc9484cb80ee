"""Programs that ask how tensors lie in memory: a file has the example's answer, and takes no tensor with another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

X = torch.arange(12.0).reshape(3, 4)
TRANSPOSED = X.reshape(4, 3).T
BEHIND = torch.arange(20.0)[8:].view(3, 4)


def asks(x: Tensor) -> Tensor:
    return x * 2 if x.is_contiguous() else x * 3


def strides(x: Tensor) -> Tensor:
    return x * (x * 2).stride(0) if x.sum() > 0 else x


def offset(x: Tensor) -> Tensor:
    return x + x.storage_offset()


def does_not_ask(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize(
    ("function", "other", "text"),
    [
        (asks, TRANSPOSED, "asks was saved for x of strides (4, 1), not of strides (1, 3)"),
        (strides, TRANSPOSED, "strides was saved for x of strides (4, 1), not of strides (1, 3)"),
        (offset, BEHIND, "offset was saved for x with a storage offset of 0, not 8"),
    ],
)
def test_another_layout_is_refused(function: Any, other: Tensor, text: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f{suffix}"
    sg.save(function, path, args=(X,))
    loaded = sg.load(path)
    torch.testing.assert_close(loaded(X + 1), function(X + 1))
    with pytest.raises(ValueError, match="was saved for x") as caught:
        loaded(other)
    assert str(caught.value).startswith(text)


def test_an_open_size_is_contiguous(tmp_path: Path) -> None:
    sg.save(asks, tmp_path / "f.pt2", args=(X,), input_spec=[sg.InputSpec([None, 4])])
    loaded = sg.load(tmp_path / "f.pt2")
    torch.testing.assert_close(loaded(torch.ones(7, 4)), torch.ones(7, 4) * 2)
    with pytest.raises(ValueError, match="x contiguous, not of strides"):
        loaded(TRANSPOSED)


def test_who_does_not_ask_takes_every_layout(tmp_path: Path) -> None:
    sg.save(does_not_ask, tmp_path / "f.pt2", args=(X,))
    for x in (X, TRANSPOSED, BEHIND):
        torch.testing.assert_close(sg.load(tmp_path / "f.pt2")(x), does_not_ask(x))
