"""What code can tell of arguments besides their contents: identity, layout, attributes, facts of tensors."""

from __future__ import annotations

import datetime
import decimal
import fractions
import functools
import pathlib
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.soundness.worlds import World, X
from tests.unit.trace.agreement import agree


# ---- values
class Slotted:
    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n


VALUES: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "datetime": (lambda i: datetime.datetime(2020, 1, i), lambda value: value.day),
    "date": (lambda i: datetime.date(2020, 1, i), lambda value: value.day),
    "timedelta": (datetime.timedelta, lambda value: value.days),
    "Decimal": (decimal.Decimal, int),
    "Fraction": (fractions.Fraction, int),
    "UUID": (lambda i: uuid.UUID(int=i), lambda value: value.int),
    "Path": (lambda i: pathlib.Path("a" * i), lambda value: len(str(value))),
    "slice": (slice, lambda value: value.stop),
    "set": (lambda i: {i}, sum),
    "frozenset": (lambda i: frozenset({i}), sum),
    "deque": (lambda i: deque([i]), sum),
    "deque of some length": (lambda i: deque([0], i), lambda value: value.maxlen),
    "numpy float": (np.float32, float),
    "numpy integer": (np.int64, int),
    "object with slots": (Slotted, lambda value: value.n),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_whose_addresses_are_used_again(name: str) -> None:
    make, read = VALUES[name]
    function = functools.partial(_times, read)
    static = sg.to_static(lambda x, value: x * read(value), backend="eager")
    for number in range(1, 7):
        assert_same(function(X(), make(number)), static(X(), make(number)), f"call {number}")


def _times(read: Callable[[Any], Any], x: Tensor, value: Any) -> Tensor:
    result: Tensor = x * read(value)
    return result


@pytest.mark.parametrize("name", [name for name in VALUES if name != "object with slots"])
def test_equal_values_need_one_program(name: str) -> None:
    make, read = VALUES[name]
    static = sg.to_static(lambda x, value: x * read(value), backend="eager")
    for _ in range(3):
        assert_same(X() * read(make(2)), static(X(), make(2)))
    assert static.cache_info().programs == 1


def test_the_order_of_a_set() -> None:
    def f(x: Tensor, items: Any) -> Tensor:
        for item in items:
            x = x * 2 + item
        return x

    def emptied() -> set[int]:
        return set(range(9)) - set(range(1, 8))

    agree(f, (X(), {8, 0}), (X(), {0, 8}), (X(), emptied()), programs=3)


# ---- objects that are like one another
class Plain:
    def __init__(self, k: float) -> None:
        self.k, self.n, self.log, self.last, self.sum = k, 0, [], None, torch.zeros(3)  # type: ignore[var-annotated]

    def scaled(self, x: Tensor) -> Tensor:
        return x * self.k


class Stepping:
    def __init__(self, k: float) -> None:
        self.k, self.n, self.seen = k, 0, []  # type: ignore[var-annotated]

    @sg.to_static(backend="eager")
    def step(self, x: Tensor) -> Tensor:
        self.n += 1
        self.seen.append(self.n)
        return x * self.k + self.n


def writes(x: Tensor, plain: Plain) -> Any:
    plain.n += 1
    plain.log.append(1)
    plain.last = x * 2
    plain.sum.add_(x)
    return x * plain.k + plain.n, plain


def applies(x: Tensor, function: Callable[[Tensor], Any]) -> Any:
    return function(x)


def _scaled_by(a: Any, x: Tensor, b: int = 1) -> Tensor:
    result: Tensor = a * x + b
    return result


@pytest.mark.parametrize(
    ("function", "make", "programs"),
    [
        (lambda x, plain: x * plain.k, lambda: Plain(2.0), 1),
        (lambda x, items: x * items.n, lambda: Slotted(2), 1),
        (writes, lambda: Plain(2.0), 1),
        (applies, lambda: lambda x: x * 2, 1),
        (applies, lambda: Plain(2.0).scaled, 1),
        (applies, lambda: functools.partial(_scaled_by, 2.0, b=3), 1),
        (applies, lambda: functools.partial(_scaled_by, torch.ones(3)), 1),
        (lambda x, array: x * float(array.sum()), lambda: np.arange(3.0), 1),
    ],
    ids=["object", "slots", "written", "function", "method", "partial", "partial of a tensor", "array"],
)
def test_like_objects_have_one_program(function: Any, make: Callable[[], Any], programs: int) -> None:
    static = sg.to_static(function, backend="eager")
    for number in range(1, 5):
        given, same = make(), make()
        expected, actual = function(X() * number, given), static(X() * number, same)
        if isinstance(expected, tuple):
            assert actual[1] is same
            expected, actual = expected[0], actual[0]
        assert_same(expected, actual)
        assert_same(getattr(given, "__dict__", None), getattr(same, "__dict__", None))
    assert static.cache_info().programs == programs


def test_the_methods_of_several_objects_have_one_program() -> None:
    held = Stepping.__dict__["step"]
    before = held.cache_info().programs
    objects = [Stepping(2.0), Stepping(2.0), Stepping(2.0)]
    for number in range(1, 4):
        for each in objects:
            assert_same(X() * 2.0 + number, each.step(X()))
    assert [each.seen for each in objects] == [[1, 2, 3]] * 3
    assert held.cache_info().programs == before + 1
    assert_same(X() * 5.0 + 1, Stepping(5.0).step(X()))


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (lambda x, plain: x * plain.k, lambda: Plain(2.0), lambda: Plain(3.0)),
        (lambda x, plain: x * plain.n if plain.last is None else x, lambda: Plain(2.0), lambda: _lasting()),
        (applies, lambda: lambda x: x * 2, lambda: lambda x: x * 3),
        (applies, lambda: _times_closed(2), lambda: _times_closed(3)),
        (applies, lambda: Plain(2.0).scaled, lambda: Plain(3.0).scaled),
        (applies, lambda: functools.partial(_scaled_by, 2.0), lambda: functools.partial(_scaled_by, 3.0)),
        (applies, lambda: functools.partial(_scaled_by, 2.0), lambda: functools.partial(_scaled_by, 2.0, b=2)),
        (applies, lambda: functools.partial(_scaled_by, X()), lambda: functools.partial(_scaled_by, torch.ones(1))),
        (lambda x, a: x * float(a.sum()), lambda: np.arange(3.0), lambda: np.arange(3.0) + 1),
        (lambda x, a: x * a.shape[0], lambda: np.arange(4.0), lambda: np.arange(4.0).reshape(2, 2)),
        (lambda x, a: x * a.itemsize, lambda: np.zeros(4), lambda: np.zeros(4, np.int64)),
    ],
    ids=[
        *("number", "tensor or none", "function", "closure", "method", "partial", "keyword", "partial of a tensor"),
        *("array", "shape", "dtype"),
    ],
)
def test_unlike_objects_are_told_apart(function: Any, first: Any, second: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for make in (first, second, first, second):
        assert_same(function(X(), make()), static(X(), make()))


def _lasting() -> Plain:
    plain = Plain(2.0)
    plain.last = X()  # type: ignore[assignment]  # not None any more
    return plain


def _times_closed(k: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x * k


def compared_object() -> World:
    known = Plain(2.0)
    return lambda x, plain: x * 2 if plain is known else x, [(X(), Plain(2.0)), (X(), known), (X(), Plain(2.0))]


def object_in_a_list() -> World:
    known = [Plain(2.0), Plain(2.0)]
    return lambda x, plain: x * 2 if plain in known else x, [(X(), Plain(2.0)), (X(), known[0]), (X(), Plain(2.0))]


def object_as_a_key() -> World:
    known = Plain(2.0)
    table = {known: 1.0}
    return lambda x, plain: x * table.get(plain, 5.0), [(X(), Plain(2.0)), (X(), known), (X(), Plain(2.0))]


def global_object() -> World:
    known = Plain(2.0)

    def f(x: Tensor, plain: Plain) -> Tensor:
        plain.k += 1
        return x * known.k

    return f, [(X(), known), (X(), Plain(2.0)), (X(), known)]


def object_given_twice() -> World:
    def f(x: Tensor, one: Plain, other: Plain) -> Tensor:
        one.k = 7.0
        return x * other.k

    plain = Plain(1.0)
    return f, [(X(), plain, plain), (X(), Plain(1.0), Plain(2.0)), (X(), Plain(1.0), Plain(2.0))]


def functions_remembered() -> World:
    known: dict[Any, float] = {}

    def f(x: Tensor, function: Any) -> Any:
        if function not in known:
            known[function] = 1.0
        return function(x) * len(known)

    one, other = (_doubling() for _ in range(2))
    return f, [(X(), one), (X(), one), (X(), other), (X(), other)]


def _doubling() -> Callable[[Tensor], Tensor]:
    return lambda x: x * 2


TOLD = [compared_object, object_in_a_list, object_as_a_key, global_object, object_given_twice, functions_remembered]


@pytest.mark.parametrize("make", TOLD)
def test_objects_that_the_code_tells_apart(make: Callable[[], World]) -> None:
    (function, calls), (again, same_calls) = make(), make()
    static = sg.to_static(again, backend="eager")
    for number, (args, same_args) in enumerate(zip(calls, same_calls, strict=True)):
        assert_same(function(*args), static(*same_args), f"call {number}")
        assert_same([vars(a) for a in args[1:]], [vars(a) for a in same_args[1:]], f"call {number}: what was passed")
