"""Breaks in training steps: backward passes, gradients and optimizers on either side of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.bytecode.segmented import X, to_partial


def of_a_leaf(model: nn.Module, x: Tensor) -> Any:
    weight = x.clone().requires_grad_()
    loss = (weight**2).sum()
    print(weight.grad)
    loss.backward()
    print(weight.grad.tolist())
    first, weight.grad = weight.grad.clone(), None
    (weight * 3).sum().backward()
    return first, weight.grad


def of_a_model(model: nn.Module, x: Tensor) -> Any:
    loss = model(x).sum()
    print(loss.item())
    model.zero_grad()
    loss.backward()
    print(model.weight.grad.sum().item())
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    return norm, model.weight.grad.clone()


def steps(model: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for number in range(3):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        losses.append(loss.item())
        print(number, losses[-1])
        loss.backward()
        print("norm", model.weight.grad.norm().item())
        optimizer.step()
    return losses


def accumulated(model: nn.Module, x: Tensor) -> Any:
    for part in x.split(1):
        loss = (model(part) ** 2).sum()
        print(loss.item())
        loss.backward()
    total = model.weight.grad.clone()
    model.zero_grad()
    return total, model.weight.grad


def by_autograd_grad(model: nn.Module, x: Tensor) -> Any:
    loss = model(x).sum()
    print("a")
    (gradient,) = torch.autograd.grad(loss, model.weight)
    print(gradient.tolist())
    return gradient, model.weight.grad


@pytest.mark.parametrize("step", [of_a_leaf, of_a_model, steps, accumulated, by_autograd_grad])
def test_training_steps(step: Callable[[nn.Module, Tensor], Any], capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = []
    for wrap in (lambda f: f, to_partial):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        function = wrap(step)
        given = [function(model, torch.stack([X, -X]) * number) for number in (1, 1, 2, 3)]
        outcomes.append((given, list(model.parameters()), capsys.readouterr().out))
    (expected, weights, said), (actual, others, told) = outcomes
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(others, weights)
    assert told == said
