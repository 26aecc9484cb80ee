"""``max`` and ``min`` of tuples, lists and objects with an order of their own, in which only the run knows numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree

CALLS = (tensor([3.0, 2.0]), tensor([2.0, 4.0]), tensor([-3.0, 1.0]), tensor([5.0, 5.0]))


@dataclasses.dataclass(order=True)
class Scored:
    score: float
    place: int


class Ranked:
    def __init__(self, rank: Any) -> None:
        self.rank = rank

    def __lt__(self, other: Ranked) -> Any:
        return self.rank < other.rank


def the_best_so_far(x: Tensor) -> tuple[float, int]:
    best = (0.0, -1)
    for i, v in enumerate(x.tolist()):
        best = max(best, (v, i))
    return best


def the_best_of_a_loop(x: Tensor) -> tuple[int, int]:
    best = (-1, -1)
    for i in range(int(x[0])):
        best = max(best, (int(x[i % 2]), i))
    return best


def or_none(x: Tensor) -> tuple[float, int] | None:
    best = None
    for i in range(int(x[0])):
        pair = (float(x[i % 2]), i)
        best = pair if best is None else min(best, pair)
    return best


def of_several(x: Tensor) -> Any:
    a, b = x.tolist()
    nested = max([((a, 2), "a"), ((b, 1), "b")])
    return max((a, 1), (b, 2)), min([(int(a), 1), (int(b), 0)]), nested, max([a, 1], [b, 0])


def of_what_is_drawn(x: Tensor) -> Any:
    return max(zip(x.tolist(), range(2))), min((v, i) for i, v in enumerate(x.tolist()))


def beside_nan(x: Tensor) -> Any:
    a, b = x.tolist()
    n = float("nan") if a > 2 else a
    return max((n, 1), (b, 2)), max((b, 2), (n, 1)), min((n, 1), (b, 2)), min((b, 2), (n, 1))


def of_unknown_length(x: Tensor) -> Any:
    found = []
    for i in range(int(x[0])):
        found.append((float(x[i % 2]), i))
    return min(found, default=(0.0, 0)), max(found), min(found)


def of_objects(x: Tensor) -> Any:
    a, b = x.tolist()
    return max(Scored(a, 1), Scored(b, 0)).place, min(Ranked(a), Ranked(b)).rank, max([Ranked(a), Ranked(b)]).rank


FUNCTIONS = [
    the_best_so_far,
    the_best_of_a_loop,
    or_none,
    of_several,
    of_what_is_drawn,
    beside_nan,
    of_unknown_length,
    of_objects,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", [the_best_of_a_loop, of_several], ids=lambda function: function.__name__)
def test_in_files(tmp_path: Path, function: Callable[[Tensor], Any]) -> None:
    path = tmp_path / "program.pt2"
    sg.save(function, path, args=(CALLS[0],))
    loaded = sg.load(path)
    for call in CALLS:
        assert_same(function(call), loaded(call), f"{call}")
