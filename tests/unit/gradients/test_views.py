"""Views made under `torch.no_grad`, which say that they require a gradient and never get one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager

VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "t": lambda w: w.t(),
    "view": lambda w: w.view(-1),
    "element": lambda w: w[0],
    "mT": lambda w: w.mT,
    "unbind": lambda w: w.unbind(0),
    "written": lambda w: w.view(-1).mul_(0.5),
    "norm": lambda w: w.view(-1).norm(),
    "asked": lambda w: (w.t().requires_grad, w.t().is_leaf),
}


def _weight() -> Tensor:
    return torch.arange(9.0, dtype=torch.float64).reshape(3, 3).requires_grad_()


@pytest.mark.parametrize("view", VIEWS)
def test_view_before_backward(view: str) -> None:
    @as_in_eager
    def scenario(wrap: Wrap) -> Any:
        w = _weight()

        def f(x):
            with torch.no_grad():
                VIEWS[view](w)
            (w @ x).sum().backward()
            return x

        f = wrap(f)
        return [(f(V(*a, g=False)), w.grad.clone()) for a in (P, N)], w

    scenario()


@pytest.mark.parametrize("view", VIEWS)
def test_view_in_a_branch_with_backward(view: str) -> None:
    @as_in_eager
    def scenario(wrap: Wrap) -> Any:
        w = _weight()

        def f(x):
            loss = (w @ x).square().sum()
            if x.sum() > 0:
                loss.backward()
                with torch.no_grad():
                    VIEWS[view](w)
                (w @ x).sum().backward()
            return loss.detach()

        f = wrap(f)
        return [(f(V(*a, g=False)), None if w.grad is None else w.grad.clone()) for a in (N, P, N)], w

    scenario()


@pytest.mark.parametrize("view", ["t", "view", "element", "mT"])
def test_view_that_is_used_passes_no_gradient(view: str) -> None:
    @as_in_eager
    def scenario(wrap: Wrap) -> Any:
        w = _weight()

        def f(x):
            with torch.no_grad():
                v = VIEWS[view](w)
            (v.sum() * w.sum() + v.square().sum()).backward()
            return v.grad is None, torch.autograd.grad((v.sum() * x * w.sum()).sum(), w)

        f = wrap(f)
        return [(f(V(*a)), w.grad.clone()) for a in (P, N)]

    scenario()


@as_in_eager
def test_view_of_one_path(wrap: Wrap) -> Any:
    w = _weight()

    def f(x):
        if x.sum() > 0:
            with torch.no_grad():
                v = w.t()
        else:
            v = w * 2
        (v @ x + x.sum()).sum().backward()
        return x.detach()

    f = wrap(f)
    return [(f(V(*a)), None if w.grad is None else w.grad.clone()) for a in (P, N, P)]


@as_in_eager
def test_view_of_a_result(wrap: Wrap) -> Any:
    w = _weight()

    def f(x):
        h = w * 2
        with torch.no_grad():
            n = h[0].norm()
        (h @ x).sum().backward()
        return n

    f = wrap(f)
    return [(f(V(*a, g=False)), w.grad.clone()) for a in (P, N)]


@as_in_eager
def test_rows_written_in_a_loop(wrap: Wrap) -> Any:
    w = _weight()

    def f(x):
        with torch.no_grad():
            for row in w:
                if row.norm() > 3:
                    row.div_(row.norm())
        (w @ x).sum().backward()
        return x

    f = wrap(f)
    return [(f(V(*a, g=False)), w.grad.clone()) for a in (P, N)], w


@pytest.mark.parametrize("norm", [spectral_norm, nn.utils.spectral_norm], ids=["parametrization", "hook"])
def test_spectral_norm(norm: Callable[[nn.Module], nn.Module]) -> None:
    @as_in_eager
    def scenario(wrap: Wrap) -> Any:
        module = norm(nn.Linear(3, 3).double())

        def f(x):
            loss = module(x).square().mean() + module(-x).mean()
            if loss > 0.1:
                loss.backward()
            return loss.detach()

        f = wrap(f)
        losses = [f(V(*a, g=False)) for a in (P, N, (0.0, 0.0, 0.0), P)]
        return losses, [parameter.grad for parameter in module.parameters()], list(module.buffers())

    scenario()
