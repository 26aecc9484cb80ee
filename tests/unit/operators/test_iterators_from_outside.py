"""Iterators from outside the function: each call advances them, so no program may have done it for good."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def looped(x: Tensor, numbers: Iterator[int]) -> Tensor:
    for number in numbers:
        x = x + number
        if number % 3 == 2:
            break
    return x


def first(x: Tensor, numbers: Iterator[int]) -> Tensor:
    for number in numbers:
        return x + number
    return x


def delegated(x: Tensor, numbers: Iterator[int]) -> Tensor:
    def all_of() -> Iterator[int]:
        yield from numbers

    for number in all_of():
        x = x + number
    return x


def zipped_first(x: Tensor, numbers: Iterator[int]) -> Tensor:
    for number, row in zip(numbers, x):
        x = x + number * row
    return x


def starred(x: Tensor, numbers: Iterator[int]) -> Tensor:
    one, *others = numbers
    return x + one + len(others)


def added(x: Tensor, numbers: Iterator[int]) -> Tensor:
    found = [1]
    found += numbers
    return x + len(found)


def sliced(x: Tensor, numbers: Iterator[int]) -> Tensor:
    found = [1]
    found[:] = numbers
    return x + len(found)


def taken_apart(x: Tensor, numbers: Iterator[int]) -> Tensor:
    one, two, three, four = numbers
    return x + one + two + three + four


def counted(*values: int) -> int:
    return len(values)


class Holder:
    """An object whose iterator is from outside."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.numbers = numbers

    def __iter__(self) -> Iterator[int]:
        return self.numbers


def extended(x: Tensor, numbers: Iterator[int]) -> Tensor:
    found: list[int] = []
    found.extend(numbers)
    return x + len(found)


FUNCTIONS: list[Callable[[Tensor, Iterator[int]], Any]] = [
    *(looped, first, delegated, zipped_first, starred, taken_apart, added, sliced, extended),
    lambda x, numbers: x + len(list(numbers)),
    lambda x, numbers: x + sum(numbers),
    lambda x, numbers: x + sum(2 * number for number in numbers),
    lambda x, numbers: x + len([number for number in numbers]),  # noqa: C416 (as people write it)
    lambda x, numbers: x + len({number: 1 for number in numbers}),  # noqa: C420 (as people write it)
    lambda x, numbers: x + (2 in numbers),
    lambda x, numbers: x + len(sorted(numbers)),
    lambda x, numbers: x + sum(map(abs, numbers)),
    lambda x, numbers: x + sum(index for index, _ in enumerate(numbers)),
    lambda x, numbers: x + sum(itertools.islice(numbers, 2)),
    lambda x, numbers: x + sum(itertools.chain(numbers, [1])),
    lambda x, numbers: x + numbers.__next__(),
    lambda x, numbers: x + len([*numbers]),
    lambda x, numbers: x + len((0, *numbers)),
    lambda x, numbers: x + len({*numbers}),
    lambda x, numbers: x + max(*numbers, 0),
    lambda x, numbers: x + counted(*numbers),
    lambda x, numbers: x + len(dict((number, 1) for number in numbers)),  # noqa: C402 (as people write it)
    lambda x, numbers: x + len([*Holder(numbers)]),
    lambda x, numbers: x + len(list(Holder(numbers))),
    lambda x, numbers: x + (2 in Holder(numbers)),
    lambda x, numbers: x + next(iter(numbers)),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_not_advanced(function: Any) -> None:
    numbers = iter([1, 2, 3, 4])
    static = sg.to_static(lambda x: function(x, numbers), backend="eager")
    with pytest.raises(sg.CaptureError, match="an iterator from outside the function is advanced") as caught:
        static(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert list(numbers) == [1, 2, 3, 4]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_python_advances_them_between_segments(function: Any) -> None:
    ours, eagers = iter(range(4)), iter(range(4))
    static = sg.to_static(lambda x: function(x, ours), backend="eager", full_graph=False, strict=True)
    x = torch.ones(2)
    with torch.no_grad():
        assert torch.equal(static(x), function(x, eagers))
    assert list(ours) == list(eagers)


def test_one_of_the_calls_own_is_advanced() -> None:
    def function(x: Tensor) -> Any:
        numbers = iter([1, 2, 3, 4])
        return x + next(numbers), list(zip(numbers, "ab")), sum(numbers)

    assert sg.to_static(function, backend="eager")(torch.ones(1))[1:] == function(torch.ones(1))[1:]


def test_only_one_arm_may_advance_what_was_made_before() -> None:
    def function(x: Tensor) -> Any:
        numbers = iter([1, 2, 3])
        return x + len(list(numbers)) if x.sum() > 0 else x - len(list(numbers))

    with pytest.raises(sg.CaptureError, match="an iterator is advanced in a branch or loop that began after it"):
        sg.to_static(function, backend="eager")(torch.ones(2))


def test_a_generator_from_outside_goes_on() -> None:
    def numbers() -> Iterator[int]:
        yield from range(10)

    ours, eagers = numbers(), numbers()
    static = sg.to_static(lambda x: x + next(iter(ours)), backend="eager", full_graph=False, strict=True)
    for _ in range(3):
        assert torch.equal(static(torch.ones(1)), torch.ones(1) + next(eagers))


READS: list[Callable[[Tensor, Any], Any]] = [
    lambda x, file: x + len([*file]),
    lambda x, file: x + len(list(file)),
    lambda x, file: x + sum(len(line) for line in file),
    lambda x, file: x + len("".join(file)),
    lambda x, file: (x, json.load(file)),
    lambda x, file: x + file.tell(),
]


@pytest.mark.parametrize("function", READS)
def test_a_stream_is_read_by_each_call(function: Any) -> None:
    ours, eagers = io.StringIO("[1,\n2]\n"), io.StringIO("[1,\n2]\n")
    with pytest.raises(sg.CaptureError, match="from outside") as caught:
        sg.to_static(lambda x: function(x, ours), backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert ours.tell() == 0
    static = sg.to_static(lambda x: function(x, ours), backend="eager", full_graph=False, strict=True)
    for position in (0, 0, 4):
        ours.seek(position)
        eagers.seek(position)
        try:
            expected = function(torch.ones(2), eagers)
        except ValueError:
            with pytest.raises(ValueError):
                static(torch.ones(2))
        else:
            torch.testing.assert_close(static(torch.ones(2)), expected)
        assert ours.tell() == eagers.tell()


# ---- ``in`` asks what Python asks
class AsLowerCase(MutableMapping[str, int]):
    """As those for headers of HTTP."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        return self.found[key.lower()]

    def __setitem__(self, key: str, value: int) -> None:
        self.found[key.lower()] = value

    def __delitem__(self, key: str) -> None:
        del self.found[key.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


class Odd(list[int]):
    def __iter__(self) -> Iterator[int]:
        return iter([9])


class Listing:
    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


HEADERS, ODD, LISTING = AsLowerCase(), Odd([1, 2]), Listing()
HEADERS["Key"] = 1


def looks(x: Any) -> Any:
    return x * 2 if "KEY" in HEADERS else x, x * 3 if 1 in LISTING else x, "other" in HEADERS


def looks_in_a_list(x: Any) -> Any:
    return x * (2 if 1 in ODD else 3)


@pytest.mark.filterwarnings("ignore:.*for what it reads differs each time")  # a list that gives what it does not hold
def test_in_asks_what_python_asks() -> None:
    x = torch.ones(2)
    for function in (looks, looks_in_a_list):
        for full_graph in (True, False):
            static = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager")
            assert str(static(x)) == str(function(x))
