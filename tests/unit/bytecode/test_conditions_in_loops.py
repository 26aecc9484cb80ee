"""Conditions of several parts in loops: their ways meet in two places, of which one may end the iteration."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode
from tests.unit.bytecode.segmented import agrees, observed

STARTS = (-5.0, -1.0, 0.0, 1.0, 4.0)


def both_at_the_end(s: Tensor, n: int) -> tuple[Tensor, int]:
    for _ in range(3):
        if s > 0 and s < 3:
            pass
        else:
            n = n + 1
            s = s + 1
    return s, n


def prints(s: Tensor, n: int) -> tuple[Tensor, int]:
    for k in range(2):
        if s > 0:
            s = s * 2
        elif (s > -2) and (s < 3):
            print("n", n, k)
        else:
            s = s.abs()
    return s, n


def then_breaks(s: Tensor, n: int) -> tuple[Tensor, int]:
    for _ in range(3):
        if s > 0 and s < 3:
            n = n + 10
        else:
            n = n + 1
            s = s + 1
            if n > 4:
                break
    return s, n


def goes_on_and_breaks(s: Tensor, n: int) -> tuple[Tensor, int]:
    while s < 6:
        s = s + 1
        if s > 0 and s < 3:
            continue
        n = n + 1
        if s > 4 or s < -3:
            break
    return s, n


def returns(s: Tensor, n: int) -> tuple[Tensor, int]:
    while s < 6:
        s = s + 1
        if s > 4 or s == -3:
            return s * 10, n
        if not (s > 0 and s < 3):
            n = n + 1
            continue
        n = n + 100
    return s, n


def raises(s: Tensor, n: int) -> tuple[Tensor, int]:
    for k in range(3):
        if (s > 3 and s < 5) or s == -4:
            raise ValueError(f"in round {k}")
        if s < 0 or s > 2:
            s = s + 1
            continue
        n = n + 1
    return s, n


def handles(s: Tensor, n: int) -> tuple[Tensor, int]:
    for k in range(3):
        try:
            n = n + 1
            if s > k:
                raise KeyError(k)
            n = n + 10
        except KeyError:
            continue
    return s, n


def calls_what_raises(s: Tensor, n: int) -> tuple[Tensor, int]:
    def check(k: int) -> None:
        if s > k:
            raise KeyError(k)

    for k in range(3):
        try:
            n = n + 1
            if s < 3:
                check(k)
            n = n + 10
        except KeyError:
            n = n + 100
            continue
        n = n * 2
    return s, n


LOOPS = (both_at_the_end, prints, then_breaks, goes_on_and_breaks, returns, raises, handles, calls_what_raises)


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_as_one_program(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for _ in range(2):
        for start in STARTS:
            args = (torch.tensor(start), 1)
            with through_bytecode():
                wanted, given = observed(function, args), observed(static, args)
            assert (given.error, given.printed) == (wanted.error, wanted.printed)
            assert_same(wanted.value, given.value)
    assert len(static.programs) == 1


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_in_segments(function: Any) -> None:
    agrees(lambda record: function, *((torch.tensor(each), 1) for each in STARTS))
