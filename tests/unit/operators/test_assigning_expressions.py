"""What ``:=`` assigns is assigned on the paths that come to it, and on no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree


def in_an_and(x: Tensor) -> Any:
    n = 1
    both = x.sum() > 0 and (n := 5)
    return x * n, both


def in_an_or(x: Tensor) -> Tensor:
    y = x
    _ = x.sum() > 0 or (y := x * 5)
    return y


def in_the_third_operand(x: Tensor) -> Tensor:
    n, m = 1, 2
    _ = x.sum() > 0 and (n := 3) > 2 and x[0] < 2 and (m := n + 4)
    return x * n - m


def in_both_arms(x: Tensor) -> Tensor:
    n = m = 1
    k = (n := 2) if x.sum() > 0 else (m := 3)
    return x * n + m * k


def in_a_chain(x: Tensor) -> Tensor:
    n = 7
    if 0 < x.sum() < (n := 5):
        return x * n
    return x - n


def in_a_loops_condition(x: Tensor) -> Tensor:
    n = 0
    while x.abs().sum() < 100 and (n := n + 1) < 5:
        x = x * 2
    return x * n


def in_an_argument(x: Tensor) -> Tensor:
    n = 1
    y = torch.add(x, (n := 3) if x.sum() > 0 else 4)
    return y * n


def in_an_arm(x: Tensor) -> Tensor:
    n = 1
    if x[0] < 2:
        _ = x.sum() > 0 and (n := n + 5)
    return x * n


def in_itself(x: Tensor) -> Tensor:
    n = 1
    return x * (n if x.sum() > 0 and (n := 5) > 3 else n - 3)


def beneath_a_not(x: Tensor) -> Tensor:
    n = 1
    y = not (x.sum() > 0 and (n := 5) > 8)
    return x * n if y else x


def of_a_function_further_out(x: Tensor) -> Tensor:
    n = 1

    def assign() -> Any:
        nonlocal n
        return x.sum() > 0 and (n := 5)

    assign()
    return x * n


class Mangling:
    def forward(self, x: Tensor) -> Tensor:
        __n = 1
        _ = x.sum() > 0 and (__n := 5)
        return x * __n


def before_a_finally(x: Tensor) -> Tensor:
    n = 1
    try:
        _ = x.sum() > 0 and (n := 5)
    finally:
        x = x * n
    return x


def a_list(x: Tensor) -> Any:
    found = [x]
    _ = x.sum() > 0 and (found := [x, x * 2])
    return found


def that_may_be_unset(x: Tensor) -> Tensor:
    _ = x.sum() > 0 and (n := 5)
    return x * n


def of_a_manager(x: Tensor) -> Any:
    manager = None
    if x.sum() > 0:
        with (manager := torch.no_grad()):
            x = x * 2
    return x, manager is None


FUNCTIONS = [
    *(in_an_and, in_an_or, in_the_third_operand, in_both_arms, in_a_chain, in_a_loops_condition, in_an_argument),
    *(in_an_arm, in_itself, beneath_a_not, of_a_function_further_out, Mangling().forward, before_a_finally, a_list),
    *(that_may_be_unset, of_a_manager),
]
CALLS = (P, N, P * 0, N, P / 4, torch.tensor([-1.0, 1.5, 1.5]))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_assigned_where_it_is_evaluated(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS, programs=2)


GLOBAL = 1


def of_a_global(x: Tensor) -> Tensor:
    global GLOBAL
    _ = x.sum() > 0 and (GLOBAL := GLOBAL + 1)
    return x * GLOBAL


def test_a_global() -> None:
    global GLOBAL
    seen = []
    for target in (of_a_global, sg.to_static(of_a_global, backend="eager")):
        GLOBAL = 1
        seen.append([*((target(x).tolist(), GLOBAL) for x in CALLS)])
    assert seen[0] == seen[1]
