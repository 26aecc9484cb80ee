"""Loops that are tried unrolled, and begun anew as staged ones: iterators that an attempt made are made again."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from torch import Tensor

from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree, refusal

LAYERS = (("a", 1), ("b", 2), ("a", 3))


def enumerated_pairs(x: Tensor) -> Tensor:
    for _ in range(4):
        for place, (kind, factor) in enumerate(zip(*zip(*LAYERS))):
            x = x * factor + place if kind == "a" else x - factor
        if (x.sum(-1) > 50).all():
            break
    return x


def expressions_in_expressions(x: Tensor) -> Tensor:
    for _ in range(4):
        picked = tuple(tuple(layer[i] for i in (1, 0)) for layer in LAYERS)
        for factor, _ in picked:
            x = x * factor - 1
        if (x.sum(-1) > 50).all():
            break
    return x


def assigned_in_an_expression(x: Tensor) -> Tensor:
    last = x
    for _ in range(4):
        sums = tuple((last := factor * x.sum()) for _, factor in LAYERS)
        x = x + sums[0] - sums[1] * 3
        if (x.sum(-1) > 50).all():
            break
    return x + last


@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize("function", [enumerated_pairs, expressions_in_expressions, assigned_in_an_expression])
def test_those_of_the_iteration(function: Any, front_end: str) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        agree(function, P, N, P * 30)


def drawn_by_an_expression(x: Tensor) -> Tensor:
    numbers = iter(range(8))
    for _ in range(4):
        x = x + sum(number * 2 for number in zip(numbers, (1,)) for number in number)
        if (x.sum(-1) > 50).all():
            break
    return x


def test_one_from_before_is_not_advanced_twice() -> None:
    assert refusal(drawn_by_an_expression, P).reason.code == "SG305"
