"""A ``forward`` that a module has been given for itself: another call may find another one, of the same code."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor, nn

from tests.unit.soundness.turns import Turns, agrees


def multiplying(factor: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: x * factor


def as_method(factor: int, module: nn.Module) -> Any:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        return x * factor

    return types.MethodType(forward, module)


def by(factor: int, x: Tensor) -> Tensor:
    return x * factor


class Multiplies:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor

    def apply(self, x: Tensor) -> Tensor:
        return x * self.factor


REPLACEMENTS: dict[str, Callable[[int, nn.Module], Any]] = {
    "closure": lambda number, module: multiplying(number),
    "method": as_method,
    "partial": lambda number, module: functools.partial(by, number),
    "object": lambda number, module: Multiplies(number),
    "bound": lambda number, module: Multiplies(number).apply,
}


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", REPLACEMENTS)
def test_another_forward_is_called(name: str, full: bool) -> None:
    def make() -> Turns:
        module: Any = nn.Identity()
        return lambda x: module(x), lambda number: setattr(module, "forward", REPLACEMENTS[name](number, module))

    agrees(make, full)


@pytest.mark.parametrize("full", [True, False])
def test_of_a_module_inside(full: bool) -> None:
    def make() -> Turns:
        module = nn.Sequential(nn.Identity())
        return lambda x: module(x), lambda number: setattr(module[0], "forward", multiplying(number))

    agrees(make, full)


@pytest.mark.parametrize("full", [True, False])
def test_one_that_comes_and_goes(full: bool) -> None:
    def make() -> Turns:
        module: Any = nn.Identity()

        def change(number: int) -> None:
            if number in (1, 2):
                module.forward = multiplying(number + 1)
            elif number == 3:
                del module.forward

        return lambda x: module(x), change

    agrees(make, full)
