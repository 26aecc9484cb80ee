"""A method of what may be None or of two types, called in a `try` whose handler stays Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

UP = torch.tensor([1.0, 2.0])


def a_sum(x: Tensor) -> Any:
    found = x * 2 if x.sum() > 0 else None
    try:
        r = found.sum()
    except Exception as error:  # the function is about what it gets
        r = type(error).__name__, str(error)
    return r, x


def a_list(x: Tensor) -> Any:
    found = x * 2 if x.sum() > 0 else None
    try:
        r = found.tolist()
    except Exception as error:  # the function is about what it gets
        r = type(error).__name__, str(error)
    return r, x


def a_text_or_a_number(x: Tensor) -> Any:
    found = "text" if x.sum() > 0 else 3
    try:
        r = found.upper()
    except Exception as error:  # the function is about what it gets
        r = type(error).__name__, str(error)
    return r, x


@pytest.mark.parametrize("order", [(UP, -UP, UP), (-UP, UP, -UP)], ids=["up", "down"])
@pytest.mark.parametrize("function", [a_sum, a_list, a_text_or_a_number], ids=lambda function: function.__name__)
def test_the_handler_gets_what_is_raised(function: Callable[[Tensor], Any], order: tuple[Tensor, ...]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in order:
        assert repr(static(x)) == repr(function(x))
