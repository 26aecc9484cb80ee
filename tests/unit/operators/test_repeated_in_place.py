"""``values *= 2``: a list or deque is repeated in place, under all its names, and only on the path that does it."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import refusal

CALLS = [torch.tensor(values) for values in ([3, 1, 2], [2, 0, 1], [-4, 1, 1])]


def on_one_path(x: Tensor) -> Any:
    values = same = [1]
    if x.sum() > 3:
        values *= 2
    return values, values is same


def a_deque(x: Tensor) -> Any:
    values = collections.deque([int(x[0])])
    if x.sum() > 3:
        values *= 2
    else:
        values *= 3
    return values


def in_a_loop(x: Tensor) -> Any:
    values = same = [v for v in x.tolist() if v > 0]
    for v in x:
        if v > 1:
            values *= 2
    return values, len(same)


def numbers_and_tensors(x: Tensor) -> Any:
    total, row = 1.0, x + 0
    if x.sum() > 3:
        total *= 2
        row *= 3
    return total, row


def an_object_of_its_own(x: Tensor) -> Any:
    class Count:
        def __init__(self) -> None:
            self.value = 1

        def __imul__(self, by: int) -> Count:
            self.value *= by
            return self

    count = Count()
    for v in x.tolist():
        if v > 1:
            count *= 2
    return count.value


@pytest.mark.parametrize("function", [on_one_path, a_deque, in_a_loop, numbers_and_tensors, an_object_of_its_own])
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(function(x), static(x))


def test_deques_of_other_lengths_are_no_elements_of_one_structure() -> None:
    def held(x: Tensor) -> Any:
        rows = []
        if x[0] > 2:
            rows.append(collections.deque([1]))
            rows.append(collections.deque([2, int(x[1])]))
        return rows

    assert refusal(held, CALLS[0]).reason.code == "SG203"
