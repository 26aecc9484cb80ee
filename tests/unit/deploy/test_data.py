"""``.data`` of a tensor: in a graph what ``detach()`` is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.tensor([1.0, 2.0, 3.0])


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight.data


def masked(x: Tensor, y: Tensor) -> Tensor:
    return x[(y > 1).data]


def in_an_arm(x: Tensor) -> Tensor:
    y = x * 2
    if y.data.sum() > 0:
        y = y.data * 3
    return y


def written(x: Tensor) -> Tensor:
    y = x * 2
    y.data.add_(1)
    return y


@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("function", "args"), [(Scaled(), (X,)), (masked, (X, X)), (in_an_arm, (X,)), (written, (X,))]
)
def test_data_in_files(function: Any, args: tuple[Tensor, ...], suffix: str, tmp_path: Path) -> None:
    sg.save(function, tmp_path / f"program{suffix}", args=args)
    loaded = sg.load(tmp_path / f"program{suffix}")
    for by in (1, -1, 3):
        given = tuple(by * each for each in args)
        torch.testing.assert_close(loaded(*given), function(*given))
