"""Attributes that code gives to tensors: which of several tensors one is decides whether it has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P


def asked(x: Tensor) -> Any:
    y = x * 2
    y.tag = "a"  # type: ignore[attr-defined]
    if x.sum() > 0:
        y = y + 1
    return getattr(y, "tag", None)


def asked_by_name(x: Tensor) -> Any:
    y = x * 2
    y.tag = "a"  # type: ignore[attr-defined]
    z = y if x.sum() > 0 else x
    try:
        return z.tag  # type: ignore[attr-defined]
    except AttributeError:
        return "none"


def after_a_loop(x: Tensor) -> Any:
    y = x * 2
    y.tag = "a"  # type: ignore[attr-defined]
    for _ in range(int(x.sum())):
        y = y + 1
    return hasattr(y, "tag"), y


def behind_a_break(x: Tensor) -> Any:
    y = x * 2
    y.tag = "a"  # type: ignore[attr-defined]
    if x.sum() > 0:
        y = y + 1
    print(end="")
    return vars(y)


def deleted(x: Tensor) -> Any:
    y = x * 2
    y.tag = "a"  # type: ignore[attr-defined]
    z = y if x.sum() > 0 else x
    try:
        del z.tag  # type: ignore[attr-defined]
    except AttributeError:
        return "none", vars(y)
    return vars(y)


FUNCTIONS = [asked, asked_by_name, after_a_loop, behind_a_break, deleted]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_between_steps(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, full_graph=False, backend="eager")
    for x in (P, N, P):
        assert str(static(x)) == str(function(x))


def of_an_argument(x: Tensor, y: Tensor) -> Any:
    if x.sum() > 0:
        y = y + 1
    return getattr(y, "tag", None)


def named_of_an_argument(x: Tensor, y: Tensor) -> Any:
    if x.sum() > 0:
        y = y + 1
    try:
        return y.tag  # type: ignore[attr-defined]
    except AttributeError:
        return "none"


def in_a_loop(x: Tensor, y: Tensor) -> Any:
    while y.sum() < 20:
        y = y + (1 if hasattr(y, "tag") else 2)
    return y


def deleted_of_an_argument(x: Tensor, y: Tensor) -> Any:
    del y.tag  # type: ignore[attr-defined]
    return x + y


def tagged() -> Tensor:
    y = torch.ones(3)
    y.tag = "a"  # type: ignore[attr-defined]
    return y


@pytest.mark.parametrize("bytecode", [False, True])
@pytest.mark.parametrize("function", [of_an_argument, named_of_an_argument, in_a_loop, deleted_of_an_argument])
def test_of_arguments_with_a_full_graph(function: Callable[..., Any], bytecode: bool) -> None:
    def refused() -> sg.CaptureError:
        with pytest.raises(sg.CaptureError) as caught:
            sg.to_static(function, backend="eager")(N, tagged())
        return caught.value

    if bytecode:
        with through_bytecode():
            error = refused()
    else:
        error = refused()
    assert error.reason.code == "SG305"


@pytest.mark.parametrize("function", [of_an_argument, in_a_loop])
def test_one_that_later_calls_have(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in (P, N):
        assert str(static(x, torch.ones(3))) == str(function(x, torch.ones(3)))
    with pytest.raises(sg.CaptureError, match="tag"):
        static(N, tagged())
