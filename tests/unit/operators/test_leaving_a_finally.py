"""``break``, ``continue`` and ``return`` in a ``finally``: they end an exception that is under way."""

# ruff: noqa: B012  # these are what is tested
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

CALLS = [torch.tensor([a, b, c]) for a in (-9.0, -1.0, 1.0, 9.0) for b in (-9.0, 1.0, 9.0) for c in (-9.0, 1.0)]


def breaks(x: Tensor) -> Any:
    y = 0
    for i in range(3):
        try:
            y = y + 1
            if x[i] > 0:
                raise KeyError(1)
            y = y + 10
        finally:
            break
    return y


def continues(x: Tensor) -> Any:
    y = 0
    for i in range(3):
        try:
            y = y + 1
            if x[i] > 0:
                raise KeyError(1)
            y = y + 10
        finally:
            continue
    return y


def returns(x: Tensor) -> Any:
    y = 0
    try:
        y = y + 1
        if x[0] > 0:
            raise KeyError(1)
        y = y + 10
    finally:
        return y


def breaks_on_a_condition(x: Tensor) -> Any:
    y = 0
    for i in range(3):
        try:
            y = y + 1
            if x[i] > 0:
                raise KeyError("k")
            y = y + 10
        finally:
            y = y + 100
            if x[i] > 5:
                break
    return y


def ends_a_return(x: Tensor) -> Any:
    for i in range(3):
        try:
            if x[i] > 0:
                return x + 1
            if x[i] < -5:
                raise ValueError("v")
        finally:
            if x[i] < 2:
                continue
    return x


def with_a_handler_around(x: Tensor) -> Any:
    try:
        try:
            if x[0] > 0:
                raise KeyError("k")
            x = x + 1
        except ValueError:
            x = x * 2
        finally:
            if x[1] > 0:
                return x * 10
    except KeyError:
        return x * 100
    return x


def read_by_the_finally_alone(x: Tensor) -> Any:
    y, z = 0, 0
    try:
        y = y + 1
        if x[0] > 0:
            raise KeyError(1)
        y = y + 10
    except KeyError:
        z = 5
    finally:
        z = z + y
    return z


def read_by_the_else_alone(x: Tensor) -> Any:
    y = 0
    try:
        y = y + 1
        if x[0] > 0:
            raise KeyError(1)
        y = y + 10
    except KeyError:
        z = 5
    else:
        z = y
    return z


@pytest.mark.parametrize(
    "function",
    [
        *(breaks, continues, returns, breaks_on_a_condition, ends_a_return, with_a_handler_around),
        *(read_by_the_finally_alone, read_by_the_else_alone),
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


def test_what_an_operation_raises_is_ended_too() -> None:
    def function(x: Tensor, n: Tensor) -> Tensor:
        y = x
        try:
            y = x + 1
            y = x[int(n)]
        finally:
            return y

    agree(function, *((CALLS[0], torch.tensor(n)) for n in (0, 5, 1, 7)))


# ---- where nothing in the body raises
def returns_on_a_condition_unraised(x: Tensor) -> Any:
    try:
        if x[0] < 0:
            return -x
        x = x + 1
    finally:
        if x[1] > 0:
            return x / 9
    return x


def continues_on_a_condition_unraised(x: Tensor) -> Any:
    for i in range(3):
        try:
            x = x + 1
            if x[i] < 0:
                break
        finally:
            if x.max() > 3:
                continue
        x = x * 2
    return x


@pytest.mark.parametrize("function", [returns_on_a_condition_unraised, continues_on_a_condition_unraised])
def test_a_condition_of_the_run_in_a_finally_is_staged_where_nothing_raises(function: Any) -> None:
    agree(function, *CALLS)
