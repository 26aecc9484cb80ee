"""A file serves every size of an open dimension, whatever the example's is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.harness import python_module

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


def inner_and_tail(x: Tensor) -> Tensor:
    return torch.cat([x[1:-1], x[-3:]])


FUNCTIONS = [inner, inner_written, tail_written, raised_on_a_path, inner_and_tail]
SUFFIXES = [".pt2", pytest.param(".onnx", marks=pytest.mark.slow), pytest.param(".aoti.pt2", marks=pytest.mark.slow)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_slices_of_any_size(function: object, size: int, suffix: str, tmp_path: Path) -> None:
    # A package would raise for one element: Inductor gives x[1:-1] of it a negative size.
    spec = [sg.InputSpec([sg.Dim("n", min=2)])] if suffix == ".aoti.pt2" else OPEN
    sg.save(function, tmp_path / f"sliced{suffix}", args=(torch.ones(size),), input_spec=spec)
    loaded = sg.load(tmp_path / f"sliced{suffix}", native=True)
    for each in (2, 3, 4, 7) if suffix == ".aoti.pt2" else (1, 2, 3, 4, 7):
        x = torch.arange(1.0, each + 1)
        torch.testing.assert_close(loaded(x), function(x))  # type: ignore[operator]


def ends(x: Tensor) -> Tensor:
    return x[:3] + x[-3:]


def shifted(x: Tensor) -> Tensor:
    return x[1:] - x[:-1]


def joined(x: Tensor) -> Tensor:
    return torch.cat([x[:2], x[-2:]])


def against_itself(x: Tensor) -> Tensor:
    return x.reshape(-1, 1) + x[:3]


def stacked(x: Tensor) -> Tensor:
    return torch.stack([x[:1], x[-1:]])


def on_paths(x: Tensor) -> Tensor:
    return x[:3] + x[-3:] if x.sum() > 0 else x[3:]


def written_over(x: Tensor) -> Tensor:
    x = x.clone()
    x[:2] = x[-2:] * 2
    return x


def chosen(x: Tensor) -> Tensor:
    return torch.where(x[:3] > 0, x[-3:], x[:3])


def run_over(x: Tensor) -> Tensor:
    return x.sum() + torch.stack([row * 2 for row in x[:4]])


def behind(x: Tensor) -> Tensor:
    total = x.sum() * 0
    for row in x[4:]:
        total = total + row
    return total


IN_PYTHON = [*FUNCTIONS, ends, shifted, joined, against_itself, stacked, on_paths, written_over, chosen]


@pytest.mark.parametrize("function", IN_PYTHON)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_file_in_python_takes_any_size(function: Any, size: int, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "sliced.py", args=(torch.arange(-1.0, size - 1),), input_spec=OPEN)
    written = getattr(python_module(tmp_path / "sliced.py"), function.__name__)
    for each in (0, 1, 2, 3, 4, 7):
        for sign in (1, -1):
            x = torch.arange(1.0, each + 1) * sign
            torch.testing.assert_close(written(x), function(x))


@pytest.mark.parametrize("function", [run_over, behind])
@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_what_runs_over_a_slice_takes_any_size_or_is_not_saved(
    function: Any, size: int, suffix: str, tmp_path: Path
) -> None:
    """How many elements there are may be decided by the size of the example."""
    path, made_for_it = tmp_path / f"sliced{suffix}", (function is run_over) == (size > 4)
    if made_for_it:
        with pytest.raises(sg.CaptureError, match=r"a program for x.shape\[0\] (<|>=) 4; for x") as raised:
            sg.save(function, path, args=(torch.arange(1.0, size + 1),), input_spec=OPEN)
        assert raised.value.reason.code == "SG501"
        assert not path.exists()
        return
    sg.save(function, path, args=(torch.arange(1.0, size + 1),), input_spec=OPEN)
    written = getattr(python_module(path), function.__name__) if suffix == ".py" else sg.load(path)
    for each in (1, 2, 3, 4, 5, 7):
        x = torch.arange(1.0, each + 1)
        torch.testing.assert_close(written(x), function(x))


@pytest.mark.slow
def test_a_package_that_would_not_take_a_size_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "sliced.aoti.pt2"
    with pytest.raises(sg.CaptureError, match=r"not serve every size .*: for x.shape\[0\] = 1"):
        sg.save(inner, path, args=(torch.ones(3),), input_spec=OPEN)
    assert not path.exists()
