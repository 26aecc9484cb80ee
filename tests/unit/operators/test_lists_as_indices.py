"""Tensors indexed by lists of whole numbers whose length only the run knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree, refusal

ROWS = torch.arange(16.0).reshape(4, 4)
GIVEN = [
    (torch.tensor(values), ROWS)
    for values in ([1.0, 2.0, 3.0, -1.0], [1.0, 1.0, -1.0, 1.0], [-1.0, 0.0, 0.0, 3.0], [-1.0, 0.0, 0.0, 0.0])
]


def filtered(x: Tensor, rows: Tensor) -> Tensor:
    return rows[[i for i in range(4) if x[i] > 0]]


def counted(x: Tensor, rows: Tensor) -> Any:
    found = []
    for i in range(int(x.sum())):
        found.append(i % 3 - 1)
    return rows[found], rows[:, found], rows[found, found]


def beside_known_ones(x: Tensor, rows: Tensor) -> Tensor:
    found = [0, 3]
    for i in range(int(x.sum())):
        found.append(i % 3)
    return rows[found].sum(0)


def stored(x: Tensor, rows: Tensor) -> Tensor:
    found = [i for i in range(4) if x[i] > 0]
    rows = rows.clone()
    rows[found] = x
    return rows


FUNCTIONS = [filtered, counted, beside_known_ones, stored]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Any) -> None:
    agree(function, *GIVEN)


def test_a_file_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "file.pt2"
    sg.save(filtered, path, args=GIVEN[0])
    loaded = sg.load(path)
    for given in GIVEN:
        assert torch.equal(loaded(*given), filtered(*given))


def test_a_tuple_is_several_indices() -> None:
    def function(x: Tensor, rows: Tensor) -> Tensor:
        found: tuple[int, ...] = ()
        for i in range(int(x.sum())):
            found = (*found, i)
        return rows[found]

    assert refusal(function, *GIVEN[0]).reason.code == "SG210"
