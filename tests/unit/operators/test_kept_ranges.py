"""A range of a length that only the run knows, kept in a variable and asked otherwise than by a loop."""

from __future__ import annotations

import collections.abc
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode

CALLS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [-1.0, 2.0, -3.0], [-1.0, -2.0, -3.0])]


def first(x: Tensor) -> Any:
    found = range(x[x > 0].numel())
    try:
        return found[0], x
    except IndexError as error:
        return str(error), x


def last(x: Tensor) -> Any:
    found = range(2, 2 + x[x > 0].numel() * 2, 2)
    try:
        return found[-1] * x
    except IndexError:
        return x


def by_a_number_of_the_run(x: Tensor) -> Any:
    found = range(x[x > 0].numel())
    try:
        return x * found[x[x > 1.5].numel() - 1]
    except IndexError:
        return x


def of_its_kind(x: Tensor) -> Any:
    found = range(x[x > 0].numel())
    asked = isinstance(found, range), isinstance(found, (list, tuple)), isinstance(found, collections.abc.Sequence)
    return asked, type(found), found.__class__, x


def of_each(x: Tensor) -> Any:
    return sum(i * x[i] for i in range(x[x > 0].numel())), len(range(x[x > 0].numel()))


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize(
    "function", [first, last, by_a_number_of_the_run, of_its_kind, of_each], ids=lambda function: function.__name__
)
def test_it_has_bounds(function: Callable[[Tensor], Any], way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        for x in CALLS:
            assert repr(static(x)) == repr(function(x))


def cut(x: Tensor) -> Any:
    return list(range(x[x > 0].numel())[1:])


def looked_up(x: Tensor) -> Any:
    return range(x[x > 0].numel() + 3).index(1), x


def matched(x: Tensor) -> Any:
    match range(x[x > 0].numel()):
        case [_, *_]:
            return x
        case _:
            return x * 2


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_pattern_looks_into_it(full_graph: bool) -> None:
    static = sg.to_static(matched, backend="eager", full_graph=full_graph)
    for x in CALLS:
        assert repr(static(x)) == repr(matched(x))


@pytest.mark.parametrize("function", [cut, looked_up], ids=lambda function: function.__name__)
def test_the_rest_is_refused_or_pythons(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError):
        sg.to_static(function, backend="eager")(CALLS[0])
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in CALLS:
        assert repr(static(x)) == repr(function(x))
