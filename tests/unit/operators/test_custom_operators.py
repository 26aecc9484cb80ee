"""Operators of the user's: what they write to in place, and that they run though nobody uses what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

LIBRARY = torch.library.Library("stillgraph_custom", "DEF")
LIBRARY.define("inc(Tensor(a!) x) -> ()")
LIBRARY.define("taken(Tensor(a!) x) -> Tensor")
LIBRARY.define("tell(Tensor x) -> ()")
CALLED: list[float] = []


@torch.library.impl(LIBRARY, "inc", "CompositeExplicitAutograd")
def _inc(x: Tensor) -> None:
    x.add_(1)


@torch.library.impl(LIBRARY, "taken", "CPU")
def _taken(x: Tensor) -> Tensor:
    x.add_(1)
    return x.clone()


@torch.library.register_fake("stillgraph_custom::taken")
def _fake_of_taken(x: Tensor) -> Tensor:
    return x.clone()


@torch.library.impl(LIBRARY, "tell", "CPU")
def _tell(x: Tensor) -> None:
    CALLED.append(float(x.sum()))


@torch.library.register_fake("stillgraph_custom::tell")
def _fake_of_tell(x: Tensor) -> None:
    pass


@torch.library.custom_op("stillgraph_custom::fill", mutates_args=("x",))
def fill(x: Tensor, value: float) -> None:
    x.fill_(value)


@torch.library.custom_op("stillgraph_custom::heard", mutates_args=())
def heard(x: Tensor) -> Tensor:
    CALLED.append(float(x.sum()))
    return x.clone()


@heard.register_fake
def _fake_of_heard(x: Tensor) -> Tensor:
    return x.clone()


OURS = torch.ops.stillgraph_custom


def packet(x: Tensor) -> Tensor:
    OURS.inc(x)
    return x * 2


def overload(x: Tensor) -> Tensor:
    OURS.inc.default(x)
    return x * 2


def local(x: Tensor) -> Tensor:
    y = x + 1
    OURS.inc(y)
    return y * 2


def definition(x: Tensor) -> Tensor:
    fill(x, 3.0)
    return x + 1


def definition_through_torch(x: Tensor) -> Tensor:
    OURS.fill(x, 3.0)
    return x + 1


def result_unused(x: Tensor) -> Tensor:
    OURS.taken(x)
    return x * 2


def only_tells(x: Tensor) -> Tensor:
    OURS.tell(x * 2)
    heard(x * 3)
    return x * 2


def in_a_branch(x: Tensor) -> Tensor:
    y = x * 2
    if x[0] > 0:
        OURS.inc(x)
        fill(y, 5.0)
    return y + x


def a_local_in_a_branch(x: Tensor) -> Tensor:
    y = x * 1
    if x[0] > 0:
        OURS.taken(y)
    return y


def in_a_loop(x: Tensor) -> Tensor:
    while x.sum() < 5:
        OURS.inc(x)
        heard(x)
    return x * 2


FUNCTIONS = [
    *(packet, overload, local, definition, definition_through_torch, result_unused, only_tells),
    *(in_a_branch, a_local_in_a_branch, in_a_loop),
]


def outcome(function: Callable[..., Any], x: Tensor) -> Any:
    CALLED.clear()
    x = x.clone()
    return function(x).tolist(), x.tolist(), list(CALLED)


@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Callable[..., Any], grad: bool, backend: str) -> None:
    static = sg.to_static(function, backend=backend)
    with torch.set_grad_enabled(grad):
        for x in (torch.ones(2), -torch.ones(2), torch.full((2,), 0.5)):
            assert outcome(static, x) == outcome(function, x)
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_check_finds_no_difference(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", check=9)
    for x in (torch.ones(2), -torch.ones(2)):
        assert static(x.clone()).tolist() == function(x.clone()).tolist()


def test_an_assertion_without_a_result_is_made() -> None:
    def asserts(x: Tensor) -> Tensor:
        torch._assert_async(x.sum() > 0, "not above zero")
        return x * 2

    static = sg.to_static(asserts, backend="eager")
    assert static(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="not above zero"):
        static(-torch.ones(2))
