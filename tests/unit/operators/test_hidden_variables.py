"""`locals()` and its kin in a block: what does not run refuses nothing, and bytecode has no blocks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

UP, DOWN = (torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, 2.0]),)


def generate(x: Tensor, custom: Any = None) -> Any:
    if custom is not None and isinstance(custom, str):
        given = {k: v for k, v in locals().items() if k != "x"}
        return custom, given
    return x + 1


def all_given(x: Tensor, custom: Any = None) -> Any:
    if custom is not None:
        return custom(**dict(locals()))
    return x + 1


def others(x: Tensor, rule: str = "") -> Any:
    for text in rule.split():
        x = x + eval(text)
    if rule == "exec":
        exec("y = 1")
    elif rule == "names":
        return vars(), dir()
    return x if rule else x * 2


def by_the_run(x: Tensor, rule: str = "") -> Any:
    if x.sum() > 0:
        x = x * 2
        if rule:
            return eval(rule)
    return x


@pytest.mark.parametrize("function", [generate, all_given, others, by_the_run])
def test_what_does_not_run_refuses_nothing(function: Any) -> None:
    agree(function, UP, DOWN)


def test_what_runs_by_a_constant_goes_through_bytecode() -> None:
    agree(others, (UP[0], "2 3"), programs=1)
    x = UP[0]
    assert sg.symbolic_trace(generate)(x, "own") == generate(x, "own")


def looked_at(x: Tensor, n: int) -> Any:
    y = 1
    if x.sum() > 0:
        exec("y = 5")
        names = sorted(locals())
        x = x * eval("y + n") + len(vars())
    else:
        names = dir()
    for _ in range(n):
        x = x + eval("n + y") + len(locals())
    return x, y, names


def test_what_runs_by_a_condition_of_the_run_does_too() -> None:
    agree(by_the_run, (UP[0], "x + 1"), (DOWN[0], "x + 1"))
    agree(looked_at, (UP[0], 2), (DOWN[0], 2))
