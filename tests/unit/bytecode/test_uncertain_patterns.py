"""Patterns that look for a key which only the run knows to be there, or for a length which only the run knows."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import bytecode, through_bytecode

__all__ = ["bytecode"]
UP = torch.tensor([1.0, 2.0])


def its_value(x: Tensor) -> Any:
    held: dict[str, Any] = {"a": 1}
    if x.sum() > 0:
        held["b"] = x.sum()
    match held:
        case {"b": b}:
            return b
        case {"a": a, **rest}:
            return x.sum() * 3, a, rest


def whether_it_is_there(x: Tensor) -> Any:
    held: dict[str, Any] = {"a": 1}
    if x.sum() > 0:
        held["b"] = 2
    match held:
        case {"a": 2}:
            return x * 2
        case {"b": _}:
            return x * 3
        case _:
            return x * 4


def how_many(x: Tensor) -> Any:
    held: collections.deque[Tensor] = collections.deque()
    for v in x:
        if v > 0:
            held.append(v)
    match held:
        case [_]:
            return x
        case [_, *_]:
            return x * 2
        case _:
            return x * 3


FUNCTIONS = [its_value, whether_it_is_there]


@pytest.mark.parametrize("function", [*FUNCTIONS, how_many], ids=lambda function: function.__name__)
def test_python_looks_for_it(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in (UP, -UP, UP, UP - 1.5):
        assert repr(static(x)) == repr(function(x))


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_with_a_full_graph_it_is_refused(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError, match="whether 'b' is there") as caught:
        sg.to_static(function, backend="eager")(UP)
    assert caught.value.reason.code == "SG211"


@pytest.mark.parametrize("way", ["source", "bytecode"])
def test_so_is_the_length_of_a_deque(way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(how_many, backend="eager")
        with pytest.raises(sg.CaptureError, match="a pattern is tried on a value that only the run knows"):
            static(UP)
