"""Branches and loops that take several views of one memory: torch refuses them once a program is made functional."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

CALLS = (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[-1.0, -2.0], [-3.0, 4.0]]))


def branch(x: Tensor) -> Tensor:
    y, z = x.unbind(0)
    return y + z if x.sum() > 0 else y - z


def branch_within(x: Tensor) -> Tensor:
    if x[0].sum() > 0:
        y, z = (x + 1).unbind(0)
        u, v = (y * 2, z) if x.max() > 3 else (y, z * 3)
        return u + v
    return x[0]


def loop(x: Tensor) -> Tensor:
    y, z = x.unbind(0)
    total = x[0]
    while total.sum() < 30:
        total = total + y * y + z * z
    return total


def writes(x: Tensor) -> Tensor:
    rows, columns = torch.where(x > 0)
    found = torch.zeros(2)
    if len(rows) > 1:
        rows, columns = rows[:1], columns[:1]
    found.index_add_(0, rows, x[rows, columns])
    return found


@pytest.mark.parametrize("function", [branch, branch_within, loop, writes])
@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
def test_views_of_one_tensor_in_every_format(function: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"program{suffix}"
    sg.save(function, path, args=(CALLS[0],))
    for x in CALLS:
        if suffix == ".pt2":
            found = sg.load(path)(x)
        else:
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            found = torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])
        assert_same(function(x), found)


def sizes_that_are_one(x: Tensor, m: Tensor) -> Any:
    found = x[x > 0]
    first, second = found.shape[0], (found * 2).shape[0]
    if m.sum() > 0:
        return torch.zeros(first) + torch.ones(second), first + second
    return torch.ones(second) * first, second


def test_a_size_that_a_branch_takes_twice(tmp_path: Path) -> None:
    x, m = CALLS[0].flatten(), torch.ones(2)
    sg.save(sizes_that_are_one, tmp_path / "program.pt2", args=(x, m))
    program = sg.load(tmp_path / "program.pt2")
    for args in ((x, m), (x, -m), (CALLS[1].flatten(), m)):
        assert_same(sizes_that_are_one(*args), program(*args))
