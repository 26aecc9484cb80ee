"""Numbers of objects that a capture does not take for the user's own: they change, and stay numbers."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

MODULE = types.ModuleType("made_by_hand")


class Float(float):
    k: Any


class Int(int):
    k: Any


A, B = Float(1), Int(2)


def of_a_module(x: Tensor) -> Any:
    return MODULE.k, x * MODULE.k


def of_numbers(x: Tensor) -> Any:
    return A.k, x * A.k + B.k


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [of_a_module, of_numbers])
def test_they_stay_numbers(function: Callable[..., Any], full_graph: bool) -> None:
    static = sg.to_static(function, full_graph=full_graph, backend="eager")
    for number in range(4):
        MODULE.k, A.k, B.k = number, float(number), number + 1
        expected, found = function(torch.ones(2)), static(torch.ones(2))
        assert (type(found[0]), found[0]) == (type(expected[0]), expected[0])
        assert torch.equal(found[1], expected[1])
        assert (type(MODULE.k), type(A.k), type(B.k)) == (int, float, int)
