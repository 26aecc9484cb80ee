"""What properties and methods give of a list of unknown length: an element or a refusal, never its contents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree_fresh, refusal

UP = torch.tensor([1.0, 2.0, 3.0])


class Last:
    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return owner.items[-1]


class Stack:
    last = Last()

    def __init__(self) -> None:
        self.items = [1]
        self.tables = {"a": self.items}

    @property
    def top(self) -> Any:
        return self.items[-1]

    @property
    def both(self) -> Any:
        return (self.items[-1], self.tables["a"][0])

    def __neg__(self) -> Any:
        return self.items[-1]

    def __matmul__(self, other: Any) -> Any:
        return self.items[-1] + other

    def __abs__(self) -> Any:
        return self.items[-1]


class Pushed(list[int]):
    @property
    def top(self) -> int:
        return self[-1]


def property_of(stack: Stack) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            stack.items.append(5)
        return stack.top, "b", stack.both, {"k": [stack.top]}, stack.top + 1

    return function


def descriptor_of(stack: Stack) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            stack.items.append(5)
        return stack.last, [stack.last]

    return function


def operators_of(stack: Stack) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            stack.items.append(5)
        return -stack, stack @ 2

    return function


def subclass_of(stack: Stack) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        pushed = Pushed([1])
        if x.sum() > 0:
            pushed.append(5)
        return pushed.top, "b"

    return function


@pytest.mark.parametrize("make", [property_of, descriptor_of, operators_of, subclass_of])
def test_as_in_eager(make: Callable[[Stack], Callable[[Tensor], Any]]) -> None:
    agree_fresh(lambda: make(Stack()), UP, -UP, UP, programs=3)


def by_abs(x: Tensor) -> Any:
    stack = Stack()
    if x.sum() > 0:
        stack.items.append(5)
    return abs(stack), "b"


def by_a_getter(x: Tensor) -> Any:
    stack = Stack()
    if x.sum() > 0:
        stack.items.append(5)
    return operator.attrgetter("top")(stack), "b"


def by_an_index(x: Tensor) -> Any:
    items = [1]
    if x.sum() > 0:
        items.append(5)
    return operator.itemgetter(-1)(items), "b"


@pytest.mark.parametrize("function", [by_abs, by_a_getter, by_an_index])
def test_what_c_picks_is_refused(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, UP).reason.code == "SG210"


def test_a_hook_that_subscripts() -> None:
    w = torch.ones(3, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        y = w * x
        y.register_hook(lambda g: g[:] * 2)
        return y.sum()

    sg.to_static(function, backend="eager")(UP).backward()
    assert w.grad is not None
    assert torch.equal(w.grad, UP * 2)


@pytest.mark.parametrize("mode", [1, "yes"])
def test_the_mode_of_a_module_is_a_bool(mode: Any) -> None:
    module = torch.nn.Dropout()

    def function(x: Tensor) -> Any:
        module.train(mode)
        return x

    with pytest.raises(ValueError, match="expected to be boolean"):
        sg.to_static(function, backend="eager")(UP)
    assert module.training is True


def conjugated(x: Tensor) -> bool:
    z = torch.complex(x, x)
    if x.sum() > 0:
        z = z.conj()
    return z.is_conj()


def viewed(x: Tensor) -> bool:
    y = x[::2] if x.sum() > 0 else x[:2]
    return y._is_view()


@pytest.mark.parametrize("function", [conjugated, viewed])
def test_what_differs_between_tensors_of_paths_is_refused(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, UP).reason.code == "SG301"
