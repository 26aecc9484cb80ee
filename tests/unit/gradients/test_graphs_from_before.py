"""A backward pass from what was computed before the call: which gradients it leaves, only the run knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

WEIGHT = torch.ones(3, requires_grad=True)


def cloned(loss: Tensor) -> Tensor:
    loss.backward()
    assert WEIGHT.grad is not None
    return WEIGHT.grad.clone()


def asked(loss: Tensor) -> Tensor:
    loss.backward()
    return WEIGHT.detach() if WEIGHT.grad is None else WEIGHT.grad * 2


def emptied(loss: Tensor) -> Tensor | None:
    WEIGHT.grad = None
    (loss * 2).backward()
    return WEIGHT.grad


@pytest.mark.parametrize("function", [cloned, asked, emptied])
def test_gradients_of_a_graph_from_before(function: Callable[[Tensor], Any]) -> None:
    def outcome(each: Callable[[Tensor], Any], start: Tensor | None) -> Any:
        WEIGHT.grad = start
        return each((WEIGHT * torch.arange(3.0)).sum())

    static = sg.to_static(function, backend="eager")
    for start in (None, None, torch.ones(3), None):
        expected = outcome(function, None if start is None else start.clone())
        actual = outcome(static, None if start is None else start.clone())
        assert torch.equal(actual, expected)


def test_a_loss_that_does_not_reach_the_weight() -> None:
    static = sg.to_static(asked, backend="eager")
    for reaches in (True, False, True):
        WEIGHT.grad = None
        root = WEIGHT if reaches else WEIGHT.detach().requires_grad_()
        assert static((root * 3).sum()).tolist() == ([6.0] * 3 if reaches else [1.0] * 3)


def test_gradients_behind_the_end_of_a_segment() -> None:
    def step(x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        w = x.clone().requires_grad_()
        h = w * 2
        h.retain_grad()
        loss = (h * h).sum()
        print(end="")
        loss.backward()
        return w.grad, h.grad

    static = sg.to_static(step, full_graph=False, strict=True, backend="eager")
    for value in (1.0, 2.0):
        x = torch.full((2,), value)
        for actual, expected in zip(static(x), step(x), strict=True):
            assert actual is not None
            assert expected is not None
            assert torch.equal(actual, expected)
