"""A pattern that looks for a key of which only the run knows whether it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import bytecode

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


FUNCTIONS = [its_value, whether_it_is_there]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_python_looks_for_it(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in (UP, -UP, UP):
        assert repr(static(x)) == repr(function(x))


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_with_a_full_graph_it_is_refused(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError, match="whether 'b' is there") as caught:
        sg.to_static(function, backend="eager")(UP)
    assert caught.value.reason.code == "SG211"
