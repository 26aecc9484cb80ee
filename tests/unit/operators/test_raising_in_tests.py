"""Exceptions that the test of a loop raises: each iteration asks anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree


def required(count: Any) -> Any:
    if count < 0:
        raise ValueError("negative")
    return count


class Length:
    def __init__(self, count: Any) -> None:
        self.count = count

    def __len__(self) -> Any:
        return self.count


def left_at_once(x: Tensor) -> Tensor:
    count = int(x.sum())
    while required(count):
        return x * 5
    return x


def left_by_the_body(x: Tensor) -> Tensor:
    count = int(x.sum())
    while required(count):
        x = x * 5
        if x.sum() > 100:
            break
    return x


def with_another_condition(x: Tensor) -> Tensor:
    count = int(x.sum())
    while required(count) and x.sum() < 100:
        x = x * 5
    return x


def by_a_length(x: Tensor) -> Tensor:
    value = Length(int(x.sum()))
    while value:
        return x * 5
    return x


@pytest.mark.parametrize("function", [left_at_once, left_by_the_body, with_another_condition, by_a_length])
def test_as_in_eager(function: Callable[[Tensor], Tensor]) -> None:
    agree(function, *(torch.tensor([value, 0.0]) for value in (3.0, -2.0, 0.5, 7.0)))
