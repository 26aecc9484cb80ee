"""An index of the run's that is out of range says so in Python's words, whatever it was of."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg

QUEUE = collections.deque([1.0, 2.0, 3.0])


def of_a_deque(x):
    return x * QUEUE[x.sum().long().item()]


def of_a_range(x):
    return x * range(4)[x.sum().long().item()]


def of_a_tuple(x):
    return x * (1, 2)[x.sum().long().item()]


def said(function: Callable[..., Any], x: torch.Tensor) -> str:
    try:
        return repr(function(x))
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("options", [{}, {"full_graph": False, "strict": True}], ids=["full graph", "segments"])
@pytest.mark.parametrize("function", [of_a_deque, of_a_range, of_a_tuple], ids=lambda function: function.__name__)
def test_an_index_out_of_range(function: Callable[..., Any], options: dict[str, Any]) -> None:
    static = sg.to_static(function, backend="eager", **options)
    for value in (1.0, 7.0, -2.0, -9.0):
        x = torch.tensor([value])
        assert said(static, x) == said(function, x)


def copied(x):
    y = copy.copy(x)
    y.add_(1)
    return y, y is x


@pytest.mark.parametrize("options", [{}, {"full_graph": False, "strict": True}], ids=["full", "segments"])
def test_a_copy_of_a_tensor_shares_its_memory(options) -> None:
    x, y = torch.ones(2), torch.ones(2)
    found = sg.to_static(copied, backend="eager", **options)(x)
    assert repr((found, x)) == repr((copied(y), y))
