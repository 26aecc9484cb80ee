"""Sets with elements that are there on some paths only."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.partly_filled import CALLS
from tests.unit.trace.agreement import agree


def added(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s, 2 in s, 1 in s, 3 in s, len(s)


def taken(x: Tensor) -> Any:
    s = {1, 2, 3}
    if x.sum() > 1:
        s.remove(2)
    s.discard(2)
    if x[0] > 0:
        s.discard(3)
    return s, len(s)


def taken_though_missing(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    s.remove(2)
    return s


def summed(x: Tensor) -> Any:
    s = set()
    for i in range(4):
        if x[i] > 0:
            s.add(i)
    total = 0
    for i in s:
        total = total + i
    return sum(s), total, len(s), s | {7}, bool(s)


def grown_set(x: Tensor) -> Any:
    s: set[int] = set()
    while x.abs().sum() < 40:
        s.add(1)
        if x[0] > 4:
            s.add(2)
        x = x * 2
    return s, 1 in s


def updated_set(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    t = set(s)
    s.update([2, 3])
    t.add(4)
    return s, t, len(s), len(t)


SETS = [added, taken, taken_though_missing, summed, grown_set, updated_set]


@pytest.mark.parametrize("function", SETS)
@pytest.mark.parametrize("first", range(3))
def test_agrees(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])
