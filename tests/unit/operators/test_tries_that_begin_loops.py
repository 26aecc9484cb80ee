"""A loop without a condition whose body begins with a ``try``: both begin with one instruction."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

NUMBERS = [torch.tensor(n) for n in (5, 3, 1, 4)]


def returned(n: Tensor) -> Any:
    k = int(n)
    while True:
        try:
            return 10 // (k - 3), k
        except ZeroDivisionError:
            k += 1


def left(n: Tensor) -> Any:
    k = int(n)
    while True:
        try:
            v = 10 // (k - 3)
            break
        except ZeroDivisionError:
            k += 1
    return v, k


def gone_on(n: Tensor) -> Any:
    k = int(n)
    while True:
        try:
            v = [1, 2, 3][k]
        except IndexError:
            k -= 1
            continue
        return v, k


def raised_by_the_handler(n: Tensor) -> Any:
    k = int(n)
    while True:
        try:
            return 10 // (k - 3)
        except ZeroDivisionError:
            k = 7 // (k - 3)


def within_another(n: Tensor) -> Any:
    k = int(n)
    try:
        while True:
            try:
                return [1, 2, 3][k]
            except IndexError:
                k = 7 // (k - 4)
    except ZeroDivisionError:
        return -1


def one_in_the_other(n: Tensor) -> Any:
    k, tried = int(n), 0
    while True:
        try:
            try:
                return 10 // (k - 3), tried
            except IndexError:
                tried += 10
        except ZeroDivisionError:
            k, tried = k + 1, tried + 1


FUNCTIONS = (returned, left, gone_on, raised_by_the_handler, within_another, one_in_the_other)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Any) -> None:
    agree(function, *NUMBERS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for n in NUMBERS:
        try:
            expected = function(n)
        except ZeroDivisionError as error:
            with pytest.raises(ZeroDivisionError, match=str(error)):
                traced(n)
        else:
            assert traced(n) == expected
