"""`torch.utils.checkpoint`, inside the captured function and around it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import stillgraph as sg
from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager

REENTRANT = pytest.mark.parametrize("reentrant", [False, True])


@REENTRANT
def test_inside_the_function(reentrant: bool) -> None:
    def scenario(wrap: Wrap) -> Any:
        lin = nn.Linear(3, 3).double()

        def block(x):
            if x.sum() > 0:
                return lin(x).tanh()
            return lin(x) * x

        def f(x):
            y = checkpoint(block, x, use_reentrant=reentrant)
            if y.sum() > 0:
                y = checkpoint(lambda v: v * v * x, y, use_reentrant=reentrant)
            return y

        f = wrap(f)
        out = []
        for a in (P, N, P):
            x = V(*a)
            y = f(x)
            y.sum().backward()
            out.append((y, x.grad, [p.grad.clone() for p in lin.parameters()]))
        return out

    as_in_eager(scenario)()


@REENTRANT
def test_around_a_static_function(reentrant: bool) -> None:
    def scenario(wrap: Wrap) -> Any:
        lin = nn.Linear(3, 3).double()

        def block(x):
            i = torch.tensor(0)
            while x.sum() < 10 and i < 4:
                x = x + lin(x).tanh() ** 2
                i = i + 1
            return x

        block = wrap(block)
        out = []
        for a in (P, N, P):
            x = V(*a)
            y = checkpoint(block, x, use_reentrant=reentrant)
            y.sum().backward()
            out.append((y, x.grad, [p.grad.clone() for p in lin.parameters()]))
        return out

    as_in_eager(scenario)()


@as_in_eager
def test_ckpt_module_loop(wrap: Wrap) -> Any:
    layers = nn.ModuleList([nn.Linear(3, 3).double() for _ in range(3)])
    drop = nn.Dropout(0.5)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            for inner in self.layers:
                x = checkpoint(lambda inner, x: drop(inner(x)).relu(), inner, x, use_reentrant=False)
                if x.sum() > 100:
                    break
            return x

    m = wrap(M())
    out = []
    for a in (P, N, P):
        x = V(*a)
        torch.manual_seed(3)
        y = m(x)
        y.sum().backward()
        out.append((y, x.grad, [p.grad if p.grad is None else p.grad.clone() for p in layers.parameters()]))
    return out


@as_in_eager
def test_ckpt_closure_param_grad(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        def seg(v):
            if v.sum() > 0:
                return (v * w).tanh()
            return (v + w).sin()

        h = x
        for _i in range(3):
            h = checkpoint(seg, h, use_reentrant=False)
        return h

    f = wrap(f)
    out = []
    for a in (P, N):
        w.grad = None
        x = V(*a)
        f(x).sum().backward()
        out.append((x.grad, w.grad))
    return out


@as_in_eager
def test_ckpt_multi_out(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        def seg(v, k, flag=True):
            n = 0
            while v.sum() < 10 and n < 5:
                v = v * w + k
                n += 1
            return {"v": v, "n": n}, [v * 2, None]

        d, inner = checkpoint(seg, x, 2.0, flag=False, use_reentrant=False)
        return d, inner

    f = wrap(f)
    out = []
    for a in (P, N):
        w.grad = None
        x = V(*a)
        d, inner = f(x)
        (d["v"].sum() + inner[0].sum()).backward()
        out.append((d["n"], x.grad, w.grad))
    return out


@as_in_eager
def test_ckpt_rng(wrap: Wrap) -> Any:
    def f(x):
        def seg(v):
            v = nn.functional.dropout(v, 0.5, True)
            if v.sum() > 0:
                v = v * torch.rand_like(v)
            return v * v

        return checkpoint(seg, x, use_reentrant=False)

    f = wrap(f)
    out = []
    for a in (P, N):
        torch.manual_seed(5)
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@REENTRANT
def test_layers_in_segments(reentrant: bool) -> None:
    as_in_eager(lambda wrap: _in_segments(wrap, reentrant))()


def _in_segments(wrap: Wrap, reentrant: bool) -> Any:
    m = nn.Sequential(*[nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(4)]).double()

    def f(x):
        y = checkpoint_sequential(m, 2, x, use_reentrant=reentrant)
        if y.sum() > 0:
            y = y * 2
        return y

    f = wrap(f)
    out = []
    for a in (P, N):
        m.zero_grad()
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad, [p.grad for p in m.parameters()]))
    return out


@as_in_eager
def test_ckpt_method_state(wrap: Wrap) -> Any:
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3).double()
            self.cache = None
            self.bn = nn.BatchNorm1d(3).double()
            self.ckpt = True

        def inner(self, x):
            h = self.bn(self.linear(x))
            if h.sum() > 0:
                h = h * 2
            return h

        def forward(self, x):
            if self.training and self.ckpt:
                return checkpoint(self.inner, x, use_reentrant=False)
            return self.inner(x)

    m = M()
    s = wrap(m)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        m.zero_grad()
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        y = s(x)
        y.sum().backward()
        out.append((y, x.grad, [p.grad for p in m.parameters()], {k: v.clone() for k, v in m.bn.state_dict().items()}))
    return out


def test_a_block_is_not_run_again_for_what_it_does_to_python() -> None:
    """A known difference: eager counts twice."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def block(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x.sin()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.block, x, use_reentrant=False)

    counts = []
    for module in (Counting(), sg.to_static(Counting(), backend="eager")):
        module(V(*P)).sum().backward()
        module(V(*P)).sum().backward()
        counts.append(module.calls)
    assert counts == [4, 2]
