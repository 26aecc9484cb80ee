"""Files of programs that compare tuples and lists with numbers of the run in them, and keep heaps of tuples."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import bytecode  # noqa: F401  # a fixture

NAN = float("nan")
X = torch.tensor([1.0, 2.0, 0.5])
CALLS = (X, -X, X * 9, X.flip(0), torch.zeros(3), torch.tensor([1.0, 2.0, 1.0]), torch.ones(3), X * torch.tensor(NAN))


def of_two_kinds(x: Tensor) -> Any:
    left, right = (int(x[0]), float(x[1])), (int(x[2]), float(x[0]))
    return left < right, left <= right, left == right, left != right, left > right, left >= right


def of_several_lengths(x: Tensor) -> Any:
    a, b = int(x[0]), int(x[1])
    return (a,) < (a, b), (a, b) <= (a,), (a,) > (), (a, b) == (a,), (a, b) != (a,), (b, a) >= (a,), [a] < [b, 1]


def with_constants(x: Tensor) -> Any:
    a, b = int(x[0]), int(x[1])
    same = ("a", a) < ("a", b), ("a", a) < ("b", b), (True, a) > (1, b), (None, a) == (None, b), (a, b) != [a, b]
    return same, (a, "1") == (b, 1), (a, 2) in [(1, 2), (2, 1)], ((a, 1), b) < ((b, 1), a), ((a,), 1) == (a, 1)


def deciding(x: Tensor) -> Tensor:
    best, where = (0.0, 0), 0
    for i, v in enumerate(x):
        found = (float(v), -i)
        if found > best:
            best, where = found, i
    return x * where + best[1]


def in_a_loop(x: Tensor) -> Any:
    n, steps = abs(int(x[0])), 0
    while (n, steps) < (7, 3):
        n, steps = n + 1, steps + 2
    return n, steps


def of_a_heap(x: Tensor) -> Any:
    heap: list[tuple[int, int]] = []
    for i in range(int(x.abs().sum())):
        heapq.heappush(heap, (int(x[i % 3] * 2), i))
    return heap


def shortest(x: Tensor) -> Any:
    distances = [0.0, 1e9, 1e9]
    heap = [(0.0, 0)]
    while heap:
        distance, place = heapq.heappop(heap)
        if distance > distances[place]:
            continue
        for other in range(3):
            further = distance + float(x[other].abs())
            if further < distances[other]:
                distances[other] = further
                heapq.heappush(heap, (further, other))
    return distances


FUNCTIONS: list[Any] = [of_several_lengths, with_constants, in_a_loop, of_a_heap, of_two_kinds, deciding]
FUNCTIONS += [pytest.param(shortest, marks=pytest.mark.slow)]


def assert_alike(function: Callable[..., Any], loaded: Callable[..., Any]) -> None:
    for x in CALLS[:-1]:
        assert_same(function(x), loaded(x))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_tuples_are_compared_as_in_python(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    assert_alike(function, sg.load(tmp_path / "program.pt2"))


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("function", [of_two_kinds, with_constants, in_a_loop], ids=lambda each: each.__name__)
def test_through_bytecode(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    assert_alike(function, sg.load(tmp_path / "program.pt2"))


# ---- values that are not numbers: for Python one object equals itself
def of_floats(x: Tensor) -> Any:
    a, b, c = float(x[0]), float(x[1]), float(x[2])
    return (a, b) < (a, c), (a, b) == (a, b), (a, b) != (b, b), (1.0, a) < (2.0, b), (b, a) <= (c, a)


def taken_by_no_handler(x: Tensor) -> Any:
    a, b = float(x[0]), float(x[1])
    try:
        if x.sum() > 8:
            raise ValueError("large")
        found = (a, 1) < (b, 2)
    except ValueError:
        found = True
    return found


def test_one_of_two_that_is_not_a_number(tmp_path: Path) -> None:
    sg.save(of_floats, tmp_path / "program.pt2", args=(X,))
    loaded = sg.load(tmp_path / "program.pt2")
    for values in ((NAN, 1.0, 2.0), (1.0, NAN, 2.0), (1.0, 2.0, NAN), (1.0, 2.0, 2.0)):
        assert_same(of_floats(torch.tensor(values)), loaded(torch.tensor(values)))


@pytest.mark.parametrize("function", [of_floats, taken_by_no_handler], ids=lambda each: each.__name__)
def test_two_that_are_not_numbers_are_told(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    loaded = sg.load(tmp_path / "program.pt2")
    assert_same(function(X), loaded(X))
    with pytest.raises(ValueError, match="two values that are not numbers are compared in tuples"):
        loaded(torch.tensor([NAN, NAN, 1.0]))


def sorted_by_a_handler(x: Tensor) -> Any:
    values = [float(v) for v in x]
    try:
        if x.sum() > 8:
            raise ValueError("large")
        found = sorted(values)[1]
    except ValueError:
        found = 0.0
    return found


def test_what_is_sorted_and_not_a_number_reaches_no_handler(tmp_path: Path) -> None:
    sg.save(sorted_by_a_handler, tmp_path / "program.pt2", args=(X,))
    loaded = sg.load(tmp_path / "program.pt2")
    for x in (X, X * 9):
        assert_same(sorted_by_a_handler(x), loaded(x))
    with pytest.raises(ValueError, match="a value that is not a number is sorted"):
        loaded(torch.tensor([NAN, 1.0, 1.0]))
