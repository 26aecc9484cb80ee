"""Iterators of the user's classes: their methods are followed, and may end on what only the run knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.grown import agree, agree_in_segments, grown


class Each:
    """The elements of a list, one by one."""

    def __init__(self, values: list[float]) -> None:
        self.values, self.count = values, 0

    def __iter__(self) -> Each:
        return self

    def __next__(self) -> float:
        if self.count == len(self.values):
            raise StopIteration
        self.count += 1
        return self.values[self.count - 1]


class Handing:
    """An iterable that hands out an iterator of Python's."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __iter__(self) -> Iterator[float]:
        print("iter")
        return iter(self.values)


def summed_by_an_object(x: Tensor) -> Any:
    each, total = Each(grown(x)), 0.0
    for value in each:
        total = total * 2 + value
    return total, each.count


def next_of_an_object(x: Tensor) -> Any:
    each = Each(grown(x))
    return next(each, -1.0), next(each, -1.0), [*each], each.count


def advanced_by_the_body(x: Tensor) -> Any:
    each, found = Each(grown(x)), []
    for value in each:
        found.append(value)
        if value > 1:
            found.append(next(each, -1.0))
    return found


def objects_zipped(x: Tensor) -> Any:
    return list(zip(Each(grown(x)), Each(x.tolist()))), dict(enumerate(Each(grown(x))))


def objects_consumed(x: Tensor) -> Any:
    values = grown(x)
    first, *others = Each(values)
    return max(Each(values)), sorted(Each(values)), 2.0 in Each(values), first, others, [*Each(values), 0.5]


def objects_in_objects(x: Tensor) -> Any:
    return [(a, b) for a in Each(grown(x)) for b in Each(grown(x))], any(v > 2 for v in Each(grown(x)))


def handed_out(x: Tensor) -> Any:
    values = grown(x)
    return [v * 2 for v in Handing(values)], sum(Handing(values)), list(zip(Handing(values), Handing(values)))


class Counted:
    """Numbers up to a limit; it says when it is asked for an iterator."""

    def __init__(self, limit: int) -> None:
        self.limit, self.count = limit, 0

    def __iter__(self) -> Counted:
        print("iter")
        return self

    def __next__(self) -> int:
        if self.count >= self.limit:
            raise StopIteration
        self.count += 1
        return self.count


class Raising(Counted):
    """As above; it ends with an exception of another class."""

    def __next__(self) -> int:
        self.count += 1
        if self.count > self.limit:
            raise KeyError("behind the end")
        return self.count


class ByIndex:
    """A sequence that has no `__iter__`."""

    def __init__(self, values: list[float]) -> None:
        self.values, self.asked = values, 0

    def __getitem__(self, index: int) -> float:
        self.asked += 1
        if index >= len(self.values):
            raise IndexError
        return self.values[index]


def asked_once_for_an_iterator(x: Tensor) -> Any:
    limit = int(x.abs().max())
    zipped, summed, found = list(zip(Counted(limit), x.tolist())), sum(Counted(limit)), 2 in Counted(limit)
    others = list(map(float, Counted(limit))), list(filter(None, Counted(limit))), list(enumerate(Counted(limit)))
    return zipped, summed, found, any(Counted(limit)), others


def ended_by_another_exception(x: Tensor) -> Any:
    numbers, total = Raising(int(x.abs().max())), 0
    try:
        for number in numbers:
            total += number
    except KeyError as error:
        return str(error), total, numbers.count


def by_index(x: Tensor) -> Any:
    values = ByIndex(grown(x))
    return list(values), values.asked


def long_and_known(x: Tensor) -> Any:
    for value in Doubled([float(i) for i in range(100)]):
        x = x + value
    return x


class Doubled:
    """An iterator that draws from one of Python's."""

    def __init__(self, values: list[float]) -> None:
        self.it = iter(values)

    def __iter__(self) -> Doubled:
        return self

    def __next__(self) -> float:
        return next(self.it) * 2


def asked_by_iter(x: Tensor) -> Any:
    numbers = Counted(int(x.abs().max()))
    it = iter(numbers)
    return next(it), list(zip([1, 2], numbers)), it is numbers


ONE_PROGRAM: list[Callable[[Tensor], Any]] = [
    *(summed_by_an_object, next_of_an_object, advanced_by_the_body, objects_zipped, objects_consumed),
    *(objects_in_objects, handed_out, asked_once_for_an_iterator, by_index, asked_by_iter, long_and_known),
    ended_by_another_exception,
]


@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function)


@pytest.mark.slow
@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_in_segments(function: Callable[[Tensor], Any]) -> None:
    agree_in_segments(function)
