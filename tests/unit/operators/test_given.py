"""What methods of the user's give where Python asks for something of one kind: what Python refuses is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import N, P, agree


class Giving:
    """Its methods give what they are told to."""

    def __init__(self, given: Any) -> None:
        self.given = given


class Truth(Giving):
    def __bool__(self) -> Any:
        return self.given


class Length(Giving):
    def __len__(self) -> Any:
        return self.given


class Shown(Giving):
    def __repr__(self) -> Any:
        return self.given


class Counting:
    """Asking for its truth changes it."""

    def __init__(self) -> None:
        self.rate: float = 0.5

    def __bool__(self) -> Any:
        self.rate = 1.5
        return self.rate


def branch(x: Tensor, value: Any) -> Any:
    if not value:
        return x + 1
    return x - 1


def loop(x: Tensor, value: Any) -> Any:
    while value:
        return x * 5
    return x


def chosen(x: Tensor, value: Any) -> Any:
    return x + (1 if value and True else 2)


def required(x: Tensor, value: Any) -> Any:
    if not any([value]):
        raise ValueError("nothing")
    return x


def measured(x: Tensor, value: Any) -> Any:
    return x + len(value) + bool(value)


def shown(x: Tensor, value: Any) -> Any:
    return x, repr(value)


VALUES = [True, False, 1, 0.5, "a", -1, 2**70, None, 3]


@pytest.mark.parametrize("function", [branch, loop, chosen, required])
@pytest.mark.parametrize("kind", [Truth, Length])
def test_truth(function: Callable[..., Any], kind: type[Giving]) -> None:
    agree(lambda x, given: function(x, kind(given)), *((P, given) for given in VALUES), programs=len(VALUES))


def test_length() -> None:
    agree(lambda x, given: measured(x, Length(given)), *((P, given) for given in VALUES), programs=len(VALUES))


def test_text() -> None:
    agree(lambda x, given: shown(x, Shown(given)), (P, "a"), (P, None), (P, 3), programs=3)


def test_a_tensor_is_no_bool() -> None:
    agree(lambda x: branch(x, Truth(x.sum() > 0)), P)
    agree(lambda x: branch(x, Truth(bool(x.sum() > 0))), P, N)
    agree(lambda x: branch(x, Truth(int(x.sum()))), P)
    agree(lambda x: branch(x, Length(int(x.sum()))), P, torch.zeros(3))


def test_an_object_from_outside() -> None:
    def counted(x: Tensor) -> Any:
        value = Counting()
        try:
            return x + bool(value)
        except TypeError as error:
            return x * value.rate, str(error)

    agree(counted, P)


class NoTruth:
    __bool__ = None


class NoLength:
    __len__ = None


class OfTheClass:
    """Its methods are bound in other ways."""

    __bool__ = staticmethod(lambda: False)

    @classmethod
    def __len__(cls) -> int:
        return 2


@pytest.mark.parametrize("kind", [NoTruth, NoLength, OfTheClass])
def test_truth_by_what_is_no_method(kind: type) -> None:
    def function(x: Tensor) -> Any:
        found = []
        for ask in (bool, lambda v: not v, lambda v: 1 if v else 2, lambda v: any([v])):
            try:
                found.append(ask(kind()))
            except TypeError as error:
                found.append(str(error))
        return x, found

    agree(function, P, N)


def test_lengths_of_the_class() -> None:
    agree(lambda x: x + len(OfTheClass()), P, N)
