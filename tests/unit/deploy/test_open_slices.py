"""A file serves every size of an open dimension, whatever the example's is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import stillgraph as sg

OPEN = [sg.InputSpec([None])]


def inner(x: Tensor) -> Tensor:
    return x[1:-1]


def inner_written(x: Tensor) -> Tensor:
    x = x.clone()
    x[1:-1] = 0
    return x


def tail_written(x: Tensor) -> Tensor:
    x = x.clone()
    x[1:] = 0
    return x


def raised_on_a_path(x: Tensor) -> Tensor:
    x = x * 1
    if x.sum() > 1.5:
        x[:-1] += 3
    return x


FUNCTIONS = [inner, inner_written, tail_written, raised_on_a_path]
SUFFIXES = [".pt2", pytest.param(".onnx", marks=pytest.mark.slow), pytest.param(".aoti.pt2", marks=pytest.mark.slow)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_slices_of_any_size(function: object, size: int, suffix: str, tmp_path: Path) -> None:
    sg.save(function, tmp_path / f"sliced{suffix}", args=(torch.ones(size),), input_spec=OPEN)
    loaded = sg.load(tmp_path / f"sliced{suffix}", native=True)
    # A package raises for one element: Inductor gives x[1:-1] of it a negative size.
    for each in (2, 3, 4, 7) if suffix == ".aoti.pt2" else (1, 2, 3, 4, 7):
        x = torch.arange(1.0, each + 1)
        torch.testing.assert_close(loaded(x), function(x))  # type: ignore[operator]
