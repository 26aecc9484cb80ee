"""What methods of the user's give that only the run knows, where Python asks for something of one kind.

Each use is compared with eager PyTorch on what Python takes and on what it refuses, within a handler and without one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, outcome, refusal, same_error


class Length:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __len__(self) -> Any:
        return self.given


class Sized(Length):
    def __iter__(self) -> Any:
        return iter([1, 2])


class Hinting:
    """Iterates over itself, and says how much is to come."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.left = 2

    def __length_hint__(self) -> Any:
        return self.given

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left


class Index:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __index__(self) -> Any:
        return self.given


class Whole:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __int__(self) -> Any:
        return self.given


class Real:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __float__(self) -> Any:
        return self.given


class Complex:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __complex__(self) -> Any:
        return self.given


class Text:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __str__(self) -> Any:
        return self.given

    def __repr__(self) -> Any:
        return self.given

    def __format__(self, spec: str) -> Any:
        return self.given


class Hash:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __hash__(self) -> Any:
        return self.given


GIVEN: dict[str, Callable[[Tensor], Any]] = {
    "int": lambda x: int(x),
    "float": lambda x: float(x),
    "bool": lambda x: bool(x),
    "tensor": lambda x: x,
    "text": lambda x: f"{x}",
    "scalar": lambda x: x.numpy()[()],
    "large": lambda x: int(x) * 2**62,
}
CALLS = [tensor(2), tensor(-2), tensor(0), tensor(1)]


def is_true(value: Any) -> int:
    return 1 if value else 2


def in_list(value: Any) -> Any:
    return [*value]


def in_call(value: Any) -> Any:
    return (lambda *args: args)(*value)


def in_set(value: Any) -> Any:
    return {*value}


def extended(value: Any) -> Any:
    found = [0]
    found.extend(value)
    return found


def taken_apart(value: Any) -> Any:
    first, second = value
    return first, second


SIZED = [len, bool, is_true, list, tuple, sorted, operator.length_hint, in_list, in_call, in_set, extended, taken_apart]


@pytest.mark.parametrize("given", ["int", "bool", "tensor", "text", "scalar", "float"])
@pytest.mark.parametrize("use", SIZED)
def test_lengths(use: Callable[[Any], Any], given: str) -> None:
    either_way(use, Sized, given)


@pytest.mark.parametrize("given", ["int", "tensor", "large"])
def test_lengths_alone(given: str) -> None:
    either_way(len, Length, given)
    either_way(is_true, Length, given)


@pytest.mark.parametrize("given", ["int", "bool", "tensor", "text", "float"])
@pytest.mark.parametrize("use", [list, tuple, in_list, in_call, in_set, operator.length_hint])
def test_hints(use: Callable[[Any], Any], given: str) -> None:
    either_way(use, Hinting, given)


def at_index(value: Any) -> Any:
    return [5, 6, 7, 8][value]


def to_index(value: Any) -> Any:
    return (5, 6, 7, 8)[:value]


def of_tensor(value: Any) -> Any:
    return torch.arange(9.0)[value]


def popped(value: Any) -> Any:
    return [5, 6, 7, 8].pop(value)


def counted(value: Any) -> Any:
    return sum(each for each in range(value))


def repeated(value: Any) -> Any:
    return [1.5] * value


def viewed(value: Any) -> Any:
    return torch.arange(6.0).narrow(0, value, 1)


USES_OF_INDEX = [
    operator.index, int, float, complex, at_index, to_index, of_tensor, popped, counted, math.factorial, viewed
]  # fmt: skip


@pytest.mark.parametrize("given", ["int", "bool", "float", "tensor", "text"])
@pytest.mark.parametrize("use", USES_OF_INDEX)
def test_indices(use: Callable[[Any], Any], given: str) -> None:
    either_way(use, Index, given)


@pytest.mark.parametrize("given", ["int", "bool", "float", "tensor", "text"])
def test_numbers(given: str) -> None:
    either_way(int, Whole, given)
    either_way(float, Real, given)
    either_way(math.sin, Real, given)
    either_way(complex, Real, given)
    either_way(complex, Complex, given)


def in_text(value: Any) -> Any:
    return f"{value}"


@pytest.mark.parametrize("given", ["int", "text", "tensor"])
@pytest.mark.parametrize("use", [str, repr, format, in_text])
def test_texts(use: Callable[[Any], Any], given: str) -> None:
    either_way(use, Text, given)


def test_none_on_one_path() -> None:
    agree(lambda x: len(Length(int(x) if x > 0 else None)), *CALLS)


def test_an_index_of_an_index() -> None:
    agree(lambda x: len(Length(Index(int(x)))), *CALLS)


def test_a_hash_is_refused_before_a_handler() -> None:
    def hashed(x: Tensor) -> Any:
        try:
            return hash(Hash(int(x)))
        except TypeError:
            return "no hash"

    assert refusal(hashed, CALLS[0]).reason.code == "SG301"


def test_what_python_asks_itself_is_not_the_handlers() -> None:
    def repeats(x: Tensor) -> Any:
        try:
            return "ab" * Index(int(x))
        except TypeError:
            return "no number"

    static = sg.to_static(repeats, backend="eager", full_graph=False)
    assert [static(each) for each in CALLS] == ["abab", "", "", "ab"]


def either_way(use: Callable[[Any], Any], kind: Callable[[Any], Any], given: str) -> None:
    """Assert that what a use gives or raises is eager's, and reaches a handler."""

    def bare(x: Tensor) -> Any:
        return use(kind(GIVEN[given](x)))

    def handled(x: Tensor) -> Any:
        found, raised = None, False
        try:
            found = use(kind(GIVEN[given](x)))
        except (TypeError, ValueError, OverflowError, IndexError):
            raised = True
        return found, raised

    with pytest.warns(RuntimeWarning, match="in plain PyTorch") if is_misread(use, kind, given) else nullcontext():
        for function in (bare, handled):
            compare(function, sg.to_static(function, backend="eager"), given)


def is_misread(use: Callable[[Any], Any], kind: Callable[[Any], Any], given: str) -> bool:
    """Whether Python's own code asks what only the run knows, so that calls are made in plain PyTorch."""
    if use is of_tensor:
        return given in ("float", "tensor", "text")
    return use is counted or (kind is Sized and given == "text" and use not in (in_set, taken_apart))


def compare(function: Callable[[Tensor], Any], static: Any, given: str) -> None:
    for call in CALLS:
        expected, actual = outcome(function, (call,)), outcome(static, (call,))
        if isinstance(actual["error"], sg.CaptureError):
            raise actual["error"]
        assert same_error(expected["error"], actual["error"]), (function, call, actual["error"])
        assert_same(expected["value"], actual["value"], f"{given}: {call}")
