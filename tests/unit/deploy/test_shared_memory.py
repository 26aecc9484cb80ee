"""State tensors that share memory: a file that would write to one of them without the other is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.tensor([1.0, 2.0, 3.0])
SUFFIXES = [".pt2", ".onnx", ".py"]


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buf", torch.zeros(2, 3))
        self.row = self.buf[0]

    def forward(self, x: Tensor) -> Any:
        self.row.add_(x)
        return self.buf.sum()


class Read(Rows):
    def forward(self, x: Tensor) -> Any:
        return self.buf.sum() + (self.row * x).sum()


class Apart(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        both = torch.zeros(2, 3)
        self.register_buffer("first", both[0])
        self.register_buffer("second", both[1])

    def forward(self, x: Tensor) -> Any:
        self.first.add_(x)
        return self.first + self.second


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_by_two_names_is_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(sg.ExportError, match="share memory that the program writes to"):
        sg.save(Rows(), tmp_path / f"rows{suffix}", args=(X,))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "suffix"), [(Read, ".pt2"), (Read, ".onnx"), (Apart, ".pt2")])
def test_what_is_read_or_lies_apart_is_saved(tmp_path: Path, kind: type[nn.Module], suffix: str) -> None:
    sg.save(kind(), path := tmp_path / f"module{suffix}", args=(X,))
    eager, loaded = kind(), sg.load(path)
    for x in (X, -X, X):
        assert torch.equal(loaded(x), eager(x))


def written(a: Tensor, b: Tensor) -> Tensor:
    a.add_(1)
    return b * 1


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_arguments_that_overlap_are_refused_where_one_is_written(tmp_path: Path, suffix: str) -> None:
    sg.save(written, path := tmp_path / f"written{suffix}", args=(torch.zeros(3), torch.zeros(3)))
    loaded, memory = sg.load(path), torch.zeros(7)
    assert torch.equal(loaded(memory[:3], memory[4:]), torch.zeros(3))
    with pytest.raises(ValueError, match="a, b with memory of their own"):
        loaded(memory[:3], memory[1:4])
