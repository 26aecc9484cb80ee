"""What callers do around a static function: accumulate, check, keep graphs, look for anomalies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in")


@as_in_eager
def test_accumulate(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 3).double()
    other = nn.Linear(3, 3).double()

    def f(x):
        if x.sum() > 0:
            return lin(x)
        return other(x)

    f = wrap(f)
    out = []
    for a in (P, P, N, P):
        f(V(*a)).pow(2).sum().backward()
        out.append([None if p.grad is None else p.grad.clone() for m in (lin, other) for p in m.parameters()])
    return out


@as_in_eager
def test_retain_graph(wrap: Wrap) -> Any:
    def f(x):
        i = torch.tensor(0)
        while x.sum() < 20 and i < 4:
            x = x * x + 1
            i = i + 1
        return x, x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y, z = f(x)
        y.sum().backward(retain_graph=True)
        out.append(x.grad.clone())
        z.sum().backward()
        out.append(x.grad.clone())
        try:
            y.sum().backward()
        except RuntimeError as e:
            out.append(str(e))
    return out


@as_in_eager
def test_anomaly(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            y = x.sqrt()
        else:
            y = (x * 0).sqrt() * 0
        return y

    f = wrap(f)
    out = []
    for a in (P, N):
        with torch.autograd.detect_anomaly(check_nan=True):
            x = V(*a)
            try:
                f(x).sum().backward()
                out.append(x.grad)
            except RuntimeError as e:
                out.append(str(e))
    return out


@as_in_eager
def test_anomaly_inside(wrap: Wrap) -> Any:
    def f(x):
        with torch.autograd.detect_anomaly(check_nan=True):
            if x.sum() > 0:
                y = x.sqrt()
            else:
                y = (x * 0).sqrt() * 0
        return y

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        try:
            f(x).sum().backward()
            out.append(x.grad)
        except RuntimeError as e:
            out.append(str(e))
    return out


@as_in_eager
def test_gradcheck(wrap: Wrap) -> Any:
    def f(x, w):
        y = x
        i = 0
        while i < 3:
            if y.sum() > 1:
                y = y * w
            else:
                y = (y + w).sin()
            i += 1
        return y

    f = wrap(f)
    return [
        torch.autograd.gradcheck(f, (V(*a), V(*b))) and torch.autograd.gradgradcheck(f, (V(*a), V(*b)))
        for a in (P, N)
        for b in (P, N)
    ]


@as_in_eager
def test_jacobian_hessian(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            return (x * x * x).sum()
        return x.sin().prod()

    f = wrap(f)
    return [(torch.autograd.functional.jacobian(f, V(*a)), torch.autograd.functional.hessian(f, V(*a))) for a in (P, N)]


@as_in_eager
def test_param_partial(wrap: Wrap) -> Any:
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3).double()
            self.b = nn.Linear(3, 3).double()
            self.a.weight.requires_grad_(False)

        def forward(self, x):
            if x.sum() > 0:
                return self.a(x)
            return self.b(x)

    m = M()
    s = wrap(m)
    out = []
    for a in (P, N, P):
        m.zero_grad()
        s(V(*a, g=False)).sum().backward()
        out.append({n: p.grad for n, p in m.named_parameters()})
    m.a.weight.requires_grad_(True)
    m.b.requires_grad_(False)
    for a in (P, N, P):
        m.zero_grad()
        y = s(V(*a, g=False))
        out.append(y.requires_grad)
        if y.requires_grad:
            y.sum().backward()
        out.append({n: p.grad for n, p in m.named_parameters()})
    return out


@as_in_eager
def test_saved_tensors_hooks(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            return (x * x).sin()
        return x.exp()

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        packed = []

        def pack(t, packed=packed):
            packed.append(t.detach().clone())
            return t.detach().to(torch.float32)

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.double()):
            y = f(x)
        y.sum().backward()
        out.append((x.grad, packed))
    return out


@as_in_eager
def test_saved_tensors_hooks_inside(wrap: Wrap) -> Any:
    def f(x):
        with torch.autograd.graph.save_on_cpu():
            if x.sum() > 0:
                y = (x * x).sin()
            else:
                y = x.exp()
        return y

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append(x.grad)
    return out
