"""Iterators over lists that are changed meanwhile: what Python's own would take a list of the run for."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.grown import CALLS, grown
from tests.unit.trace.agreement import agree, refusal


# ---- a list that the run makes longer
def from_its_end(x: Tensor) -> Any:
    values = ["a", "b", "c"]
    turned = reversed(values)
    if x.sum() > 0:
        values.append("d")
    return list(turned)


def counted(x: Tensor) -> Any:
    values = [x, x + 1]
    numbered = enumerate(values)
    if x.sum() > 0:
        values.append(x)
    return list(numbered)


def zipped(x: Tensor) -> Any:
    values = [x, x + 1]
    pairs = zip(values, [1, 2, 3])
    if x.sum() > 0:
        values.append(x)
    return list(pairs)


def mapped(x: Tensor) -> Any:
    values = [x, x + 1]
    doubled = map(operator.neg, values)
    if x.sum() > 0:
        values.append(x)
    return list(doubled)


def asked_for_the_next(x: Tensor) -> Any:
    values = [x, x + 1]
    iterator = iter(values)
    first = next(iterator)
    if x.sum() > 0:
        values.append(x)
    return first, next(iterator)


def run_over(x: Tensor) -> Any:
    values, found = [x, x + 1], []
    for value in iter(values):
        if x.sum() > 0 and len(values) < 4:
            values.append(x)
        found.append(value)
    return found


def run_over_from_its_end(x: Tensor) -> Any:
    values, found = [x, x + 1, x + 2], []
    for value in reversed(values):
        found.append(value)
        if x.sum() > 0:
            values.append(x)
    return found


def run_over_beside_another(x: Tensor) -> Any:
    values, found = [x, x + 1, x + 2], []
    for first, second in zip(values, reversed(values)):
        found.append(first - second)
        if x.sum() > 0:
            values.append(x)
        if len(found) > 4:
            break
    return found


# ---- a list that is run over from its end, and changed in between
def emptied(x: Tensor) -> Any:
    values, found = grown(x), []
    for value in reversed(values):
        found.append(value)
        values.clear()
    return found


def made_shorter(x: Tensor) -> Any:
    values = x.tolist()
    turned = reversed(values)
    values.pop()
    return list(turned)


def of_the_run_and_made_longer(x: Tensor) -> Any:
    values = grown(x)
    turned = reversed(values)
    values.append(9.0)
    return list(turned)


@pytest.mark.parametrize(
    "function",
    [
        *(from_its_end, counted, zipped, mapped, asked_for_the_next, run_over, run_over_from_its_end),
        *(run_over_beside_another, emptied, made_shorter, of_the_run_and_made_longer),
    ],
)
def test_refused(function: Any) -> None:
    error = refusal(function, CALLS[0])
    assert error.reason.code == "SG206"
    assert error.location is not None
    assert error.location.file == __file__


def made_longer(x: Tensor) -> Any:
    numbers, values = [1, 2, 3], x.tolist()
    turned, others = reversed(numbers), reversed(values)
    numbers.append(9)
    values.append(9.0)
    return [number * x for number in turned], list(others), len(numbers), len(values)


def made_longer_meanwhile(x: Tensor) -> Any:
    numbers, found = [1, 2, 3], []
    for number in reversed(numbers):
        found.append(number * x)
        numbers.append(number)
    return found, numbers


def in_a_generator(x: Tensor) -> Any:
    values = [x, x + 1]
    doubled = (value * 2 for value in values)
    if x.sum() > 0:
        values.append(x)
    return list(doubled)


def made_behind_the_change(x: Tensor) -> Any:
    values = [x, x + 1]
    if x.sum() > 0:
        values.append(x)
    return list(enumerate(values)), list(reversed(values)), list(zip(values, values))


@pytest.mark.parametrize("function", [made_longer, made_longer_meanwhile, in_a_generator, made_behind_the_change])
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
