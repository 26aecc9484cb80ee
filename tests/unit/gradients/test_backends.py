"""Regions that a backend compiles, forward and backward: eager's gradients, or an error that says why not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.gradients.derivatives import derivatives, s
from tests.unit.gradients.scenarios import N, P, V


class Routed(nn.Module):
    """Two experts, one of which each call takes, and a loop of uncertain length."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 3).double(), nn.Linear(3, 3).double()

    def forward(self, x):
        h = torch.tanh(x) * 2 + 1
        h = torch.relu(self.left(h)) + h if x.sum() > 0 else torch.sigmoid(self.right(h)) * h
        steps = 0
        while h.norm() < 6 and steps < 5:
            h = torch.sin(h) * 0.5 + h * 1.5
            steps += 1
        return h.exp().sum().log(), steps


def thawed(w, b, x):
    if x.sum() < 0:
        b.requires_grad_(True)
    (w * x + b).sum().backward()


def frozen_for_a_while(w, b, x):
    if x.sum() < 0:
        b.requires_grad_(False)
    (w * x + b).sum().backward()
    b.requires_grad_(True)


@pytest.mark.parametrize("function", [thawed, frozen_for_a_while])
def test_a_region_looks_at_what_the_program_freezes_or_thaws(function: Any) -> None:
    def run(f: Any) -> Any:
        w, b = nn.Parameter(V(*P)), nn.Parameter(V(*P), requires_grad=function is not thawed)
        return [(f(w, b, V(*values, g=False)), copy.deepcopy((w.grad, b.grad))) for values in (P, N, P, N)]

    assert_same(run(function), run(sg.to_static(function, backend="inductor")), "gradients")


def growing(x, k):
    y = x * k + x.sin()
    while y.norm() < 20:
        y = y * 1.5 + x.cos() * k
    return (y * y).sum(), y


def recomputed(x, k):
    def block(v):
        v = torch.sin(v * k) + v
        return torch.tanh(v) * v if v.sum() > 0 else v.exp() - v

    y = checkpoint(block, x, use_reentrant=False)
    return checkpoint(block, y * 2, use_reentrant=True)


def hooked(x, k):
    y = x * k + x
    limit = y.detach().abs().mean()
    y.register_hook(lambda g: g.clamp(-limit, limit))
    y = y.sin() * y if y.sum() > 0 else y.cos() * y
    return (y * 3 + k).exp()


def train_step(x, k):
    w = (x * 2 + k).detach().requires_grad_()
    loss = ((w * k).sin() + w * w).sum()
    loss = loss * 2 if loss > 3 else loss
    loss.backward()
    return (w.grad * 0.5 + 1).detach()


FUNCTIONS = [growing, recomputed, hooked, train_step]


def compare(function: Any, backend: str) -> None:
    static = sg.to_static(function, backend=backend)
    for args in ((V(*P), s(1.5)), (V(*N), s(0.5)), (V(*P, g=False), s(2.0)), (V(30.0, 20.0, 10.0), s(1.0, grad=False))):
        for accumulate in (False, True):
            expected = derivatives(function, function, args, 1, accumulate)
            actual = derivatives(static, function, args, 1, accumulate)
            for what in expected.keys() - {"graph"}:
                assert_same(expected[what], actual[what], what)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_gradients_of_compiled_regions(function: Any) -> None:
    compare(function, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS[:2], ids=lambda function: function.__name__)
def test_gradients_under_inductor(function: Any) -> None:
    compare(function, "inductor")


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_parameters_are_trained(backend: str) -> None:
    torch.manual_seed(0)
    eager = Routed()
    target = copy.deepcopy(eager)
    static = sg.to_static(target, backend=backend)
    optimizers = [torch.optim.SGD(module.parameters(), 0.01) for module in (eager, target)]
    for given in (P, N, P, (0.1, -0.1, 0.2), N):
        results = []
        for module, called, optimizer in zip((eager, target), (eager, static), optimizers, strict=True):
            optimizer.zero_grad()
            loss, steps = called(V(*given, g=False))
            loss.backward()
            results.append((loss.detach(), steps, {name: p.grad for name, p in module.named_parameters()}))
            optimizer.step()
        assert_same(*results)


@pytest.mark.parametrize("view", [False, True])
def test_second_derivatives_of_compiled_regions_are_an_error(view: bool) -> None:
    static = sg.to_static(growing, backend="aot_eager")
    x = V(*P)
    y = static(x.view_as(x) if view else x, s(1.5))[0]
    with pytest.raises(RuntimeError, match="what it compiles has no second derivatives"):
        torch.autograd.grad(y, x, create_graph=True)


def penalty(x, k):
    y = (x.sin() * x + k).exp().sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    norm = (g * g).sum()
    return norm * 2 if norm > 1 else norm


def two_heads(x, k):
    shared = (x * k).sin() * x
    first, second = (shared * 2 + 1).sum(), (shared * 3).cos().sum()
    first.backward(retain_graph=True)
    return second * x.grad.sum() if first > 0 else second


@pytest.mark.parametrize("function", [penalty, two_heads])
def test_programs_that_differentiate_in_parts_are_not_compiled(function: Any) -> None:
    static = sg.to_static(function, backend="aot_eager")
    for given in (P, N):
        outcomes = []
        for called in (function, static):
            x, k = V(*given), s(1.5)
            y = called(x, k)
            y.backward()
            outcomes.append((y, x.grad, k.grad))
        assert_same(*outcomes)
