"""``rows[i] += …`` for a list of known length and an index that only the run knows: what is there changes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

CALLS = [torch.tensor(values) for values in ([1.0, 2.0], [4.0, 4.0], [0.0, -3.0], [5.0, 20.0])]


def one_row(x: Tensor) -> Any:
    rows: list[list[Tensor]] = [[]]
    while x.sum() < 10:
        i = int((x.sum() < -100).item())
        rows[i] += [x * 2]
        x = x + 1
    return rows


def several_rows(x: Tensor) -> Any:
    rows: list[list[Tensor]] = [[], []]
    first = rows[0]
    while x.sum() < 10:
        i = int(x.sum().item()) % 2
        rows[i] += [x * 2]
        x = x + 1
    return rows, first is rows[0]


def by_rows_of_the_run(x: Tensor) -> Any:
    rows: list[list[Tensor]] = [[], []]
    found = []
    if x[0] > 2:
        found.append(x)
    rows[int(x[0].item()) % 2] += found
    return rows


def from_the_end(x: Tensor) -> Any:
    rows = [[0.0], [1.0]]
    rows[-1 - int(x[0].item()) % 2] += [5.0]
    return rows


def stored_again(x: Tensor) -> Any:
    rows = [[0.0], [1.0]]
    i = int(x[0].item()) % 2
    row = rows[i]
    row.append(2.0)
    rows[i] = row
    return rows, rows[0] is row


def another_between(x: Tensor) -> Any:
    rows: list[list[float]] = [[0.0], [1.0]]
    i = int(x[0].item()) % 2
    row = rows[i]
    rows[0] = [7.0]
    row += [2.0]
    return rows


def sets(x: Tensor) -> Any:
    rows: list[set[int]] = [set(), {1}]
    rows[int(x[0].item()) % 2] |= {3}
    return [sorted(row) for row in rows]


def numbers(x: Tensor) -> Any:
    rows = [1.0, 2.0]
    rows[int(x[0].item()) % 2] += x[1].item()
    return rows


class Counted:
    """What ``+=`` changes in place."""

    def __init__(self) -> None:
        self.total = 0.0

    def __iadd__(self, other: float) -> Counted:
        self.total += other
        return self


def objects(x: Tensor) -> Any:
    rows = [Counted(), Counted()]
    rows[int(x[0].item()) % 2] += x[1].item()
    return [row.total for row in rows]


def a_variable(x: Tensor) -> Any:
    a, b = [1.0], [2.0]
    rows = [a, b]
    row = a if x[0] > 2 else b
    row += [x[1].item()]
    return rows, row is a


def out_of_range(x: Tensor) -> Any:
    rows: list[list[float]] = [[], []]
    try:
        rows[int(x[1].item())] += [1.0]
    except IndexError:
        return rows, True
    return rows, False


FUNCTIONS = [
    *(one_row, several_rows, by_rows_of_the_run, from_the_end, stored_again, sets, numbers, objects, a_variable),
    out_of_range,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


def test_where_another_was_stored_meanwhile() -> None:
    agree(another_between, *CALLS)
