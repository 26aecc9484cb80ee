"""Whole numbers that a float stands for are exact, or it is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.passes.numbers.mixed_numbers import check_mixed_numbers
from stillgraph.passes.numbers.number_errors import MIXED
from stillgraph.passes.regions.regions import all_nodes
from stillgraph.program.operations import require
from stillgraph.program.verify import verify

INT, FLOAT = torch.tensor(1.0), torch.tensor(-1.0)
FEW, MANY, MOST = torch.tensor(40), torch.tensor(1_000_000_007), torch.tensor(2**53 + 1)


def squared(n: Tensor, p: Tensor) -> Any:
    k = int(n)
    if p < 0:
        k = 0.5  # type: ignore[assignment]  # that is the point
    return (k * k) % 1000


def compared(n: Tensor, p: Tensor) -> Any:
    k = int(n)
    if p < 0:
        k = 0.5  # type: ignore[assignment]
    return k - 2**53, k == 2**53


def met(n: Tensor, p: Tensor) -> Any:
    k = 1
    if p < 0:
        k = 0.5  # type: ignore[assignment]
    return k - int(n), k < int(n)


def in_a_loop(n: Tensor, p: Tensor) -> Any:
    k, i = 1, 0
    while i < n % 67:
        k = k * 2.5 if p < 0 else k * 3  # type: ignore[assignment]
        i += 1
    return k % 7


def in_a_condition(n: Tensor, p: Tensor) -> Any:
    k, i = 1, 0
    if p < 0:
        k = 0.5  # type: ignore[assignment]
    while k * 3 < n and i < 60:
        k = k * 2
        i += 1
    return k, i


def handled(n: Tensor, p: Tensor) -> Any:
    k = int(n)
    if p < 0:
        k = 0.5  # type: ignore[assignment]
    try:
        if p > 5:
            raise OverflowError
        return (k * k) % 10
    except OverflowError:
        return -1


@pytest.mark.parametrize("function", [squared, compared, met, in_a_loop, in_a_condition, handled])
def test_a_file_is_exact_or_says_that_it_is_not(function: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "f.pt2"
    sg.save(function, path, args=(torch.tensor(3), INT))
    loaded = sg.load(path)
    calls = [(n, p) for n in (FEW, MANY, MOST, torch.tensor(0), torch.tensor(7)) for p in (INT, FLOAT)]
    told = [outcome(loaded, n, p) for n, p in calls]
    assert MIXED in told
    for (n, p), result in zip(calls, told, strict=True):
        assert result == repr(function(n, p)) or (result == MIXED and (p is INT or n is MOST))


def outcome(loaded: Callable[..., Any], *args: Tensor) -> str:
    """The result of a call or its error, as text."""
    try:
        return repr(loaded(*args))
    except OverflowError as error:
        return f"OverflowError: {error}"


def test_where_numbers_have_one_type_nothing_is_required() -> None:
    def summed(n: Tensor) -> float:
        total, i = 0.0, 0
        while i < n:
            total += 1 / (i + 1)
            i += 1
        return total

    program = sg.export(summed, (FEW,))
    assert check_mixed_numbers(program) is program


def test_what_starts_as_a_known_number_and_is_a_float_behind_costs_nothing() -> None:
    def summed(x: Tensor) -> float:
        total = 0
        for value in x:
            total = total + float(value)  # type: ignore[assignment]
        return total

    checked = check_mixed_numbers(sg.export(summed, (torch.ones(100),)))
    verify(checked)
    assert [node for node in all_nodes(checked.graph) if node.target is require] == []
