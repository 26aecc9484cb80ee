"""A loop puts another object into a list or dict: where it does not, what is there is still the old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

VALUES = ([3.0, 1.0, 2.0, 5.0], [-3.0, 1.0, -2.0, 0.0], [1.0, 2.0, 2.0, 2.0], [0.0, -2.0, -1.0, -1.0])
CALLS = [torch.tensor(values) for values in VALUES]


class Box:
    """A value and a number."""

    def __init__(self, value: Any, number: int) -> None:
        self.value, self.number = value, number


def changed_by_the_old_name(x: Tensor) -> Any:
    box = Box(x[0].item(), 1)
    boxes = [box, box]
    for i in range(int(x[1].abs())):
        if x[i] > 1:
            boxes[-1] = Box(float(i), 2)
    box.number = 99
    return boxes[-1].number, boxes[0].number


def changed_in_the_list(x: Tensor) -> Any:
    box = Box(x[0].item(), 1)
    boxes = [box, box]
    for i in range(int(x[1].abs())):
        if x[i] > 1:
            boxes[-1] = Box(float(i), 2)
    boxes[-1].number = 99
    return boxes[-1].number, boxes[0].number, box.number


def which_row(x: Tensor) -> Any:
    first = [1]
    rows = [first, first]
    i = 0
    while i < int(x[1].abs()):
        if x[i] > 1:
            rows[-1] = [2]
        i += 1
    return first is rows[-1], rows[0] is rows[-1]


def which_value(x: Tensor) -> Any:
    first = [1]
    by_name = {"k": first}
    i = 0
    while i < int(x[1].abs()):
        if x[i] > 1:
            by_name["k"] = [3]
        i += 1
    return first is by_name["k"]


def appended_by_the_old_name(x: Tensor) -> Any:
    best: list[float] = []
    state = {"best": best, "count": 0}
    i = 0
    while i < int(x[1].abs()):
        if x[i] > 1:
            state["best"] = [x[i].item()]
        state["count"] += 1
        i += 1
    best.append(7.0)
    return state, best


FUNCTIONS = [changed_by_the_old_name, changed_in_the_list, which_row, which_value, appended_by_the_old_name]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert repr(static(x)) == repr(function(x))
