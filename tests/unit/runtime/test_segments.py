"""What goes into compiled regions, and what stays between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

INPUTS = [torch.ones(3), -torch.ones(3), torch.full((3,), 0.4)]


def several_results_of_a_recursion(x: Tensor) -> Tensor:
    def halve(x: Tensor, depth: int) -> tuple[Tensor, Tensor]:
        if x.abs().max() < 0.3:
            return x, x + depth
        left, right = halve(x / 2, depth + 1)
        return left.sin() * 2, right.cos() + left

    left, right = halve(x, 0)
    return (left.sin() + right.cos()).tanh()


def several_results_of_a_try(x: Tensor) -> Tensor:
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        y, z = x * 2, x + 1
    except ValueError:
        y, z = x * 3, x - 1
    return (y.sin() + z.cos()).tanh()


LSTM = torch.nn.LSTM(3, 3, 2, dropout=0.5)
GRU = torch.nn.GRU(3, 3, 2, dropout=0.5)
RNN = torch.nn.RNN(3, 3, 2, dropout=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("layer", [LSTM, GRU, RNN], ids=lambda layer: type(layer).__name__)
def test_a_recurrent_layer_in_training_draws_what_eager_draws(layer: torch.nn.Module, grad: bool) -> None:
    def reads(x: Tensor) -> Tensor:
        y = layer(x.sin().expand(2, 2, 3))[0].sum() + torch.rand(3)
        if x.sum() > 0:
            y = y * 2
        return y + torch.rand(3)

    def drawn(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        torch.manual_seed(0)
        y = function(x)
        gradients = list(torch.autograd.grad(y.sum(), list(layer.parameters()))) if grad else []
        return y, gradients, torch.get_rng_state()

    static = sg.to_static(reads, backend="inductor")
    with torch.set_grad_enabled(grad):
        for x in INPUTS:
            torch.testing.assert_close(drawn(static, x), drawn(reads, x))
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", [several_results_of_a_recursion, several_results_of_a_try])
def test_results_of_what_is_not_compiled_are_taken_out_before(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="aot_eager")
    for x in (*INPUTS, *(2 * x for x in INPUTS)):
        torch.testing.assert_close(static(x), function(x))
    assert static.cache_info().programs == 1
