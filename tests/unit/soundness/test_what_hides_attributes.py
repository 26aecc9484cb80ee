"""What comes to hide an attribute, or says where it is stored, between two calls: guarded, and told from the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree_fresh

X = torch.tensor([3.0, 1.0, 2.0])


class Tables(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(3))
        self.shift = nn.Parameter(torch.ones(3))
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x * self.scale) + self.shift + getattr(self, "extra", 0)


OTHERS = {"scale": X * 5, "shift": X * 7, "linear": lambda v: v * 100, "extra": 5}


@pytest.mark.parametrize("name", OTHERS)
def test_an_entry_of_a_modules_dict_hides_that_of_a_table(name: str) -> None:
    eager, static = Tables(), Tables()
    static.load_state_dict(eager.state_dict())
    call = sg.to_static(static, backend="eager")
    for module in (eager, static):
        module(X)
        module.__dict__[name] = OTHERS[name]
    assert torch.equal(call(X), eager(X))
    for module in (eager, static):
        del module.__dict__[name]
    assert torch.equal(call(X), eager(X))


class Forwarding(nn.Module):
    """As wrappers of models have it: what it lacks, the module inside may have."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + self.in_features


def test_a_module_that_forwards_what_it_lacks_needs_one_program() -> None:
    call = sg.to_static(Forwarding(), backend="eager")
    for _ in range(4):
        call(X)
    assert call.forward.cache_info()[:3] == (3, 1, 1)


class Doubled:
    """A descriptor that stores under its own name, as Python's documentation has it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return owner.__dict__.get(self.name, 1.0)

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__[self.name] = value * 2


class Kept:
    rate = Doubled()

    @property
    def level(self) -> Any:
        return self.__dict__["level"]

    @level.setter
    def level(self, value: Any) -> None:
        self.__dict__["level"] = value + 1


def stored(kept: Kept) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        kept.rate = x.sum().item()
        kept.level = 3
        return x * kept.rate, kept.level, dict(kept.__dict__)

    return function


def stored_on_a_path(kept: Kept) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            kept.rate = x.sum().item()
        return x * kept.rate

    return function


def counted(kept: Kept) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        kept.rate = kept.rate + 1
        return x * kept.rate

    return function


@pytest.mark.parametrize("make", [stored, stored_on_a_path, counted])
def test_descriptors_that_store_under_their_own_name(make: Callable[[Kept], Any]) -> None:
    agree_fresh(lambda: make(Kept()), X, -X, X * 2, programs=4)


class OnModule(nn.Module):
    rate = Doubled()

    def forward(self, x: Tensor) -> Tensor:
        self.rate = self.rate + x.sum().item()
        return x * self.rate


def test_descriptors_of_modules() -> None:
    agree_fresh(OnModule, X, -X, X * 2, programs=4)
