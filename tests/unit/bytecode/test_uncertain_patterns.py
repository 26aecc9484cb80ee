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
from tests.front_ends import through_bytecode

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


FUNCTIONS = [its_value, whether_it_is_there, how_many]


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_run_looks_for_it(function: Callable[[Tensor], Any], way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        for x in (UP, -UP, UP, UP - 1.5):
            assert repr(static(x)) == repr(function(x))
