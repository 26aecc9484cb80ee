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


def of_given(w: Tensor, o: Tensor) -> Any:
    return torch.autograd.grad(o.sum(), [w], allow_unused=True)


def behind_a_step(w: Tensor, v: Tensor) -> Any:
    a = w * 2
    print(a.sum().item())
    return torch.autograd.grad((a * 3).sum(), [w, a, v], allow_unused=True)


def again_behind_a_step(w: Tensor, v: Tensor) -> Any:
    o = w**3
    print(o.sum().item())
    (first,) = torch.autograd.grad(o.sum(), w, create_graph=True)
    print("first")
    return torch.autograd.grad(first.sum(), [w, v], allow_unused=True)


def asked_for_none(w: Tensor, v: Tensor) -> Any:
    o = w * w
    print(o.sum().item())
    a, b = torch.autograd.grad(o.sum(), [w, v], allow_unused=True)
    return a * 2, b is None


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [behind_a_step, again_behind_a_step, asked_for_none])
def test_what_is_unused_only_the_graph_from_before_knows(function: Any, full_graph: bool) -> None:
    static = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager")
    for _ in range(3):
        w, v = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
        torch.testing.assert_close(static(w, v), function(w, v))


@pytest.mark.parametrize("full_graph", [True, False])
def test_an_output_that_is_given_may_depend_on_the_input(full_graph: bool) -> None:
    static = sg.to_static(of_given, full_graph=full_graph, strict=not full_graph, backend="eager")
    w, other = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
    for make in (lambda: other, lambda: w * w, lambda: other * 3, lambda: w * 3, lambda: other):
        torch.testing.assert_close(static(w, make()), of_given(w, make()))
