"""Functions called by `__call__`, and classes derived from `functools.partial`."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


class Named(functools.partial[Any]):
    """Hides the function that Python calls behind one of its own; Python merges partials into one."""

    __slots__ = ("func",)

    def __init__(self, func: Any) -> None:
        self.func = func  # type: ignore[misc]  # a slot of its own


class Tenfold(functools.partial[Any]):
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) * 10


def decides(x: Tensor, y: Tensor) -> Tensor:
    if x.sum() > 0:
        return x - y
    return x * y


def hidden(x: Tensor) -> Tensor:
    named = Named(functools.partial(decides, x))
    return named(x + 1) + named.func(x + 2)


def own_call(x: Tensor) -> Tensor:
    return Tenfold(decides, x, y=x + 1)(y=x + 2)  # type: ignore[no-any-return]  # of a module


def by_method(x: Tensor) -> Tensor:
    return functools.partial(decides, x).__call__(x + 1)


def by_slot(x: Tensor) -> Tensor:
    return functools.partial.__call__(functools.partial(decides, x), x + 1)


def by_functions_method(x: Tensor) -> Tensor:
    return decides.__call__(x, x + 1) + type(decides).__call__(decides, x, x + 2)


OUTER = Named(functools.partial(decides, torch.ones(2)))


def outer(x: Tensor) -> Tensor:
    return OUTER(x)  # type: ignore[no-any-return]  # of a module


FUNCTIONS = (hidden, own_call, by_method, by_slot, by_functions_method, outer)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_followed(function: Callable[[Tensor], Tensor]) -> None:
    static = sg.to_static(function, full_graph=True)
    for x in (torch.ones(2), torch.tensor([-3.0, 1.0])):
        assert torch.equal(static(x), function(x))
    assert len(static.programs) == 1
