"""Taking apart what has a length that only the run knows."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

TWO, NONE, THREE = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 2.0, 3.0])
MIXED = torch.tensor([3.0, -1.0, 5.0])


def positive(x: Tensor) -> list[Tensor]:
    return [v for v in x if v > 0]


def one(x: Tensor) -> Any:
    (only,) = positive(x)
    return only


def two(x: Tensor) -> Any:
    a, b = positive(x)
    return a - b


def handled(x: Tensor) -> Any:
    try:
        a, b = positive(x)
    except ValueError:
        return x.sum() * 10
    return a - b


def difference(values: Any) -> Any:
    a, b = values
    return a - b


def handled_outside(x: Tensor) -> Any:
    try:
        return difference(positive(x))
    except ValueError:
        return x.sum() * 10


def of_a_tuple(x: Tensor) -> Any:
    a, b = tuple(positive(x))
    return a - b


def of_a_deque(x: Tensor) -> Any:
    a, b = deque(positive(x))
    return a - b


def of_a_tensor(x: Tensor) -> Any:
    a, b = x[x > 0]
    return a - b


def of_a_range(x: Tensor) -> Any:
    a, b = range(len(x[x > 0]))
    return a - b, x


def within(x: Tensor) -> Any:
    first, (a, b) = x[0], positive(x)
    return first, a - b


def within_handled(x: Tensor) -> Any:
    first, a, b = x - 1, x, x
    try:
        first, (a, b) = x, positive(x)
    except ValueError:
        return first + a
    return first + a - b


def within_starred(x: Tensor) -> Any:
    first, (a, *rest) = 1, positive(x)
    return first, a, len(rest), x


def several_targets(x: Tensor) -> Any:
    a, b = values = [c, d] = positive(x)
    return a - d, b - c, len(values)


def into_attributes(x: Tensor) -> Any:
    class Pair:
        pass

    pair: Any = Pair()
    pair.a, pair.b = positive(x)
    return pair.a - pair.b


def by_a_loop(x: Tensor) -> Any:
    total = x * 0
    for i, (a, b) in enumerate([(x[0], x[1]), positive(x)]):
        total = total + i * a - b
    return total


def by_a_comprehension(x: Tensor) -> Any:
    return [a - b for a, b in [positive(x), (x[0], x[1])]], {k: a - b for k, (a, b) in [(1, positive(x))]}


def by_a_comprehension_that_binds(x: Tensor) -> Any:
    return [(last := a - b + c) for c, (a, b) in [(1, positive(x)), (2, (x[0], x[1]))] if c < 3], last


def by_a_generator(x: Tensor) -> Any:
    def made() -> Iterator[Tensor]:
        for a, b in [positive(x), (x[0], x[1])]:
            yield a - b

    return list(made())


FUNCTIONS = [
    *(one, two, handled, handled_outside, of_a_tuple, of_a_deque, of_a_tensor, of_a_range, within, within_handled),
    *(within_starred, several_targets, into_attributes, by_a_loop, by_a_comprehension, by_a_comprehension_that_binds),
    by_a_generator,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    agree(function, TWO, NONE, THREE, MIXED, programs=2)


def test_to_the_variable_of_a_with_statement() -> None:
    @contextlib.contextmanager
    def managed(x: Tensor) -> Iterator[list[Tensor]]:
        yield positive(x)

    def entered(x: Tensor) -> Any:
        with managed(x) as (a, b):
            return a - b

    agree(entered, TWO, NONE, THREE, MIXED, programs=2)


def test_keys_that_may_be_missing() -> None:
    def keys(x: Tensor) -> Any:
        found = {"a": 1}
        if x.sum() > 0:
            found["b"] = 2
        try:
            (only,) = found
        except ValueError as error:
            return str(error), x
        return only, x

    agree(keys, TWO, NONE)


def test_a_pattern_in_a_pattern() -> None:
    def matched(x: Tensor) -> Any:
        match [1, positive(x)]:
            case [1, [a]]:
                return a
            case _:
                return x

    agree(matched, TWO, -TWO, TWO - 1)


def test_what_cannot_be_taken_apart() -> None:
    def starred(x: Tensor) -> Any:
        a, *rest = 3  # type: ignore[misc]
        return x, a, rest

    agree(starred, TWO)
