"""Comprehensions that assign variables of the function by ``:=``, where only the run decides what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg

LAST = 0


def in_a_filter(x):
    return [y for v in x.tolist() if (y := v * 2) > 1]


def of_tensors(x):
    kept = [y for v in x.unbind(0) if (y := v.sin()) > 0]
    return kept, y


def a_running_sum(x):
    total = 0
    return [total := total + v for v in x.tolist()], total


def of_a_dict(x):
    return {k: y for k, v in enumerate(x.unbind(0)) if (y := _perhaps(v)) is not None}


def _perhaps(v):
    return v * 2 if v > 1 else None


def of_a_set(x):
    return sorted({y for v in x.tolist() if (y := int(v)) > 0}), y


def in_one_another(x):
    total = 0
    return [[total := total + v for v in row] for row in x.reshape(2, -1).tolist()], total


def over_two_loops(x):
    return [(a, b) for a in x.tolist() if (b := a * 2) > 1 for c in (1, 2) if (d := c + b) > 3], b, d


def in_the_test_of_a_loop(x):
    while len([last := v for v in x.tolist() if v > 0]) > 1:
        x = x - 1
    return x, last


def in_an_arm(x):
    if x.sum() > 1:
        found = [y * 2 for v in x.tolist() if (y := v) > 0]
    else:
        found = [y := -1]
    return found, y


def of_a_global(x):
    global LAST
    return [LAST := v for v in x.tolist()], LAST


def beside_a_variable_of_its_name(x):
    v = 5
    return [y for v in x.tolist() if (y := v) > 0], v


FUNCTIONS = [
    *(in_a_filter, of_tensors, a_running_sum, of_a_dict, of_a_set, in_one_another, over_two_loops),
    *(in_the_test_of_a_loop, in_an_arm, of_a_global, beside_a_variable_of_its_name),
]


def _outcome(function: Callable[..., Any], x: torch.Tensor) -> Any:
    global LAST
    LAST = 0
    try:
        return repr(function(x)), LAST
    except UnboundLocalError as error:
        return str(error), LAST


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_as_in_eager(function: Callable[..., Any], full_graph: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for each in ([0.0, 2.0], [1.0, -2.0], [2.5, 0.5], [3.0, 1.0], [-1.0, 0.5]):
        assert _outcome(static, torch.tensor(each)) == _outcome(function, torch.tensor(each))
