"""Values that are None on one path, found by code that is not rewritten in what it is handed or reads by itself."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree, agree_fresh

UP, DOWN = torch.ones(2), -torch.ones(2)


def maybe(x: Tensor, value: Any = None) -> Any:
    return None if x.sum() > 0 else (x if value is None else value)


class Plain:
    def __init__(self, h: Any) -> None:
        self.h = h


class Slotted:
    __slots__ = ("h",)

    def __init__(self, h: Any) -> None:
        self.h = h


@dataclasses.dataclass
class Data:
    h: Any
    n: int = 1


class Pair(NamedTuple):
    h: Any
    n: int = 1


@sg.not_to_static
def looks(x: Tensor, holder: Any) -> Tensor:
    return x * 2 if holder.h is None else x * 3


@sg.not_to_static
def looks_deep(x: Tensor, holder: Any) -> Tensor:
    return x * 2 if holder.h[0]["k"] is None else x * 3


@sg.not_to_static
def looks_and_appends(x: Tensor, holder: list[Any]) -> Tensor:
    holder.append(x)
    return x * 2 if holder[0] is None else x * 3


@sg.not_to_static
def looks_and_writes(x: Tensor, holder: Any) -> Tensor:
    holder.h = x * 2 if holder.h is None else x * 3
    return x


@sg.not_to_static
def drops(x: Tensor, holder: Any) -> Tensor:
    holder.h = None
    return x


HELD: Any = None


@sg.not_to_static
def looks_around(x: Tensor) -> Tensor:
    return x * 2 if HELD is None else x * 3


def in_an_attribute(x: Tensor) -> Any:
    return looks(x, Plain(maybe(x)))


def in_a_slot(x: Tensor) -> Any:
    return looks(x, Slotted(maybe(x)))


def in_a_dataclass(x: Tensor) -> Any:
    return looks(x, Data(maybe(x)))


def in_a_named_tuple(x: Tensor) -> Any:
    return looks(x, Pair(maybe(x)))


def a_number(x: Tensor) -> Any:
    return looks(x, Plain(maybe(x, 3)))


def a_text(x: Tensor) -> Any:
    return looks(x, Plain(maybe(x, "abc")))


def two_of_them(x: Tensor) -> Any:
    return looks(x, Plain((maybe(x), maybe(x)))), looks(x, Plain(maybe(-x)))


def in_containers(x: Tensor) -> Any:
    return looks_deep(x, Plain([{"k": maybe(x)}]))


def in_a_list_that_grows(x: Tensor) -> Any:
    values = [maybe(x)]
    return looks_and_appends(x, values), values


def written(x: Tensor) -> Any:
    holder = Plain(maybe(x))
    return looks_and_writes(x, holder), holder.h


def dropped(x: Tensor) -> Any:
    holder = Plain(maybe(x))
    return drops(x, holder), holder.h


def kept_as_it_is(x: Tensor) -> Any:
    holder = Plain(maybe(x))
    before = holder.h
    return looks(x, holder), holder.h is before


def in_a_variable(x: Tensor) -> Any:
    held = maybe(x)

    @sg.not_to_static
    def inner(x: Tensor) -> Tensor:
        return x * 2 if held is None else x * 3

    return inner(x)


def in_a_global(x: Tensor) -> Any:
    global HELD
    HELD = maybe(x)
    result = looks_around(x)
    HELD = None
    return result


HOLDING = (
    *(in_an_attribute, in_a_slot, in_a_dataclass, in_a_named_tuple, a_number, a_text, two_of_them, in_containers),
    *(in_a_list_that_grows, written, dropped, kept_as_it_is, in_a_variable, in_a_global),
)


@pytest.mark.parametrize("function", HOLDING, ids=lambda function: function.__name__)
def test_code_that_is_not_rewritten_finds_none(function: Any) -> None:
    agree(function, UP, DOWN)


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h: Any = None
        self.register_buffer("seen", None)

    @sg.not_to_static
    def inner(self, x: Tensor) -> Any:
        return x * (2 if self.h is None else 3) * (5 if self.seen is None else 7)

    def forward(self, x: Tensor) -> Any:
        self.h, self.seen = maybe(x), maybe(-x)
        return self.inner(x)


def test_a_module_finds_none_in_its_attributes_and_buffers() -> None:
    agree_fresh(Remembering, UP, DOWN, UP, programs=3)  # one for each of the states that it begins with
