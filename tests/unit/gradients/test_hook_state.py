"""What hooks keep: autograd calls them as they are, so that a program need not know what they find."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same

Make = Callable[[nn.Linear, list[Any]], Callable[[Tensor], Tensor]]


def by_lambda(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        out = layer(x)
        out.register_hook(lambda gradient: kept.append(gradient))
        return out.sum()

    return function


def by_function(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        out = layer(x)

        def hook(gradient: Tensor) -> Tensor:
            kept.append(gradient)
            return gradient * len(kept)

        out.register_hook(hook)
        return out.sum()

    return function


def by_function_outside(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def hook(gradient: Tensor) -> None:
        kept.append(gradient)

    def function(x: Tensor) -> Tensor:
        out = layer(x)
        out.register_hook(hook)
        return out.sum()

    return function


def in_an_arm(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        out = layer(x)
        if x.sum() > 2:
            out.register_hook(lambda gradient: kept.append(gradient))
        return out.sum()

    return function


def of_the_module(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    layer.register_full_backward_hook(lambda module, inputs, outputs: kept.append(outputs[0]))
    return lambda x: layer(x).sum()


def before_the_module(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    layer.register_full_backward_pre_hook(lambda module, outputs: kept.append(outputs[0]))
    return lambda x: layer(x).sum()


def read_too(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        out = layer(x) * len(kept)
        out.register_hook(lambda gradient: kept.append(gradient))
        return out.sum()

    return function


def read_by_a_helper(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def helper() -> int:
        return len(kept)

    def function(x: Tensor) -> Tensor:
        out = layer(x)
        out.register_hook(lambda gradient: kept.append(gradient))
        return out.sum() * helper()

    return function


def read_under_another_name(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    holder = types.SimpleNamespace(items=kept)

    def function(x: Tensor) -> Tensor:
        out = layer(x) + len(holder.items)
        out.register_hook(lambda gradient: kept.append(gradient))
        return out.sum()

    return function


def called_too(layer: nn.Linear, kept: list[Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        out = layer(x)

        def hook(gradient: Tensor) -> Tensor:
            return gradient * len(kept)

        out.register_hook(hook)
        return hook(out).sum()

    return function


SETTLING = [by_lambda, by_function, by_function_outside, in_an_arm, of_the_module, before_the_module]
READING = [read_too, read_by_a_helper, read_under_another_name, called_too]


@pytest.mark.parametrize(("make", "settles"), [*((m, True) for m in SETTLING), *((m, False) for m in READING)])
def test_what_a_hook_keeps(make: Make, settles: bool) -> None:
    def layer() -> nn.Linear:
        torch.manual_seed(0)
        return nn.Linear(2, 2)

    (first, kept), (second, ours) = (layer(), []), (layer(), [])
    eager, static = make(first, kept), sg.to_static(make(second, ours), backend="eager")
    for call in range(5):
        x = torch.full((2,), float(call), requires_grad=True)
        expected, actual = eager(x), static(x)
        assert_same(expected, actual)
        expected.backward()
        actual.backward()
        if make is called_too:
            kept.append(call)
            ours.append(call)
        assert_same(kept, ours)
        assert_same(first.weight.grad, second.weight.grad)
    assert static.cache_info().misses <= (1 if settles else 5)
