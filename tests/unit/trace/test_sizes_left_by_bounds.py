"""What torch relied on may leave one size of an open dimension by chance: a call of another has its own program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import bytecode
from tests.unit.trace.agreement import agree

_ = bytecode
OPEN = sg.InputSpec([None])


def inner_and_tail(x: Tensor) -> Tensor:
    return torch.cat([x[1:-1], x[-3:]])


def in_an_arm(x: Tensor) -> Tensor:
    return inner_and_tail(x) if x.sum() > 0 else x * 2


def in_a_loop(x: Tensor) -> Tensor:
    total = x.sum()
    while total < 20:
        total = total + x[1:-1].abs().sum() + x[-3:].abs().sum() + 1
    return total


def written_there(x: Tensor) -> Tensor:
    x = x.clone()
    x[1:-1] += 1
    x[-3:] *= 2
    return x


FUNCTIONS = [inner_and_tail, in_an_arm, in_a_loop, written_there]


def check(function: Callable[..., Any], first: int, arguments: int = 1) -> None:
    sizes = (first, 2, 3, 5, 1, 0, 4, 7, 2)
    calls = [(torch.arange(1.0, size + 1) * sign,) * arguments for size in sizes for sign in (1, -1)]
    agree(function, *calls, input_spec=[OPEN] * arguments, programs=6)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [2, 3, 5])
def test_calls_of_every_size(function: Callable[[Tensor], Any], first: int) -> None:
    check(function, first)


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_calls_through_bytecode(function: Callable[[Tensor], Any]) -> None:
    check(function, 2)


def test_a_size_that_is_equal_to_it() -> None:
    def added(x: Tensor, y: Tensor) -> Tensor:
        return inner_and_tail(x).sum() + (x + y).sum()

    check(added, 2, arguments=2)


def test_what_asks_for_one_size_is_refused() -> None:
    def flat(x: Tensor) -> Tensor:
        return x.reshape(3)

    static = sg.to_static(flat, backend="eager", input_spec=[OPEN])
    with pytest.raises(sg.CaptureError, match="the code takes only 3") as raised:
        static(torch.ones(3))
    assert raised.value.reason.code == "SG303"
