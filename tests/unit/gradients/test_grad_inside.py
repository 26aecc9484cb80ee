"""Gradients that the captured function takes itself, by `torch.autograd.grad`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager


@as_in_eager
def test_grad_inside_simple(wrap: Wrap) -> Any:
    def f(x):
        y = (x * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        if g.sum() > 0:
            return g * x
        return g

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_grad_inside_nograph(wrap: Wrap) -> Any:
    def f(x):
        y = (x * x).sum()
        (g,) = torch.autograd.grad(y, x)
        if g.sum() > 0:
            return x - 0.1 * g
        return x + g

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_grad_inside_after_if(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            y = (x * x).sum()
        else:
            y = x.exp().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g * x

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_grad_inside_in_loop(wrap: Wrap) -> Any:
    def f(x, target):
        i = torch.tensor(0)
        while i < 5:
            x = x.detach().requires_grad_()
            loss = ((x - target) ** 2).sum()
            (g,) = torch.autograd.grad(loss, x)
            if g.norm() < 0.5:
                break
            x = x - 0.2 * g
            i = i + 1
        return x, i

    f = wrap(f)
    return [f(V(*a), V(*b, g=False)) for a in (P, N) for b in (P, N)]


@as_in_eager
def test_grad_inside_in_loop_unrolled(wrap: Wrap) -> Any:
    def f(x, target):
        for _i in range(5):
            x = x.detach().requires_grad_()
            loss = ((x - target) ** 2).sum()
            (g,) = torch.autograd.grad(loss, x)
            if g.norm() < 0.5:
                break
            x = x - 0.2 * g
        return x

    f = wrap(f)
    return [f(V(*a), V(*b, g=False)) for a in (P, N) for b in (P, N)]


@as_in_eager
def test_grad_in_arm(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        else:
            g = x * 1
        return g

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_gradient_penalty(wrap: Wrap) -> Any:
    D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()

    def f(real, fake):
        eps = torch.rand(real.shape[0], 1, dtype=torch.float64)
        mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
        score = D(mix)
        g = torch.autograd.grad(score, mix, grad_outputs=torch.ones_like(score), create_graph=True, retain_graph=True)[
            0
        ]
        gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss = D(fake).mean() - D(real).mean() + 10 * gp
        if loss > 0:
            loss = loss * 2
        return loss

    f = wrap(f)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        r = torch.randn(4, 3, dtype=torch.float64)
        k_ = torch.randn(4, 3, dtype=torch.float64)
        D.zero_grad()
        loss = f(r, k_)
        loss.backward()
        out.append((loss, [p.grad for p in D.parameters()]))
    return out


@as_in_eager
def test_maml(wrap: Wrap) -> Any:
    net = nn.Linear(3, 1).double()

    def f(xs, ys, xq, yq, steps):
        w, b = net.weight, net.bias
        for _i in range(steps):
            loss = nn.functional.mse_loss(nn.functional.linear(xs, w, b), ys)
            gw, gb = torch.autograd.grad(loss, (w, b), create_graph=True)
            w = w - 0.1 * gw
            b = b - 0.1 * gb
        q = nn.functional.mse_loss(nn.functional.linear(xq, w, b), yq)
        if q > 1:
            q = q * 0.5
        return q

    f = wrap(f)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        t = [torch.randn(4, n, dtype=torch.float64) for n in (3, 1, 3, 1)]
        net.zero_grad()
        loss = f(*t, 3)
        loss.backward()
        out.append((loss, [p.grad for p in net.parameters()]))
    return out


@as_in_eager
def test_maml_dynamic(wrap: Wrap) -> Any:
    net = nn.Linear(3, 1).double()

    def f(xs, ys, xq, yq, steps):
        w, b = net.weight, net.bias
        for _i in range(steps):
            loss = nn.functional.mse_loss(nn.functional.linear(xs, w, b), ys)
            gw, gb = torch.autograd.grad(loss, (w, b), create_graph=True)
            w = w - 0.1 * gw
            b = b - 0.1 * gb
        return nn.functional.mse_loss(nn.functional.linear(xq, w, b), yq)

    f = wrap(f)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        t = [torch.randn(4, n, dtype=torch.float64) for n in (3, 1, 3, 1)]
        net.zero_grad()
        loss = f(*t, torch.tensor(k))
        loss.backward()
        out.append((loss, [p.grad for p in net.parameters()]))
    return out


@as_in_eager
def test_pinn(wrap: Wrap) -> Any:
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def f(t):
        t = t.clone().requires_grad_(True)
        u = net(t)
        du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        ddu = torch.autograd.grad(du, t, grad_outputs=torch.ones_like(du), create_graph=True)[0]
        res = (ddu + u).pow(2).mean()
        if res > 0.01:
            res = res + du.abs().mean()
        return res

    f = wrap(f)
    out = []
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    for _k in range(4):
        opt.zero_grad()
        loss = f(torch.linspace(0, 1, 5, dtype=torch.float64)[:, None])
        loss.backward()
        opt.step()
        out.append((loss, [p.grad.clone() for p in net.parameters()]))
    return out


@as_in_eager
def test_allow_unused_maybe(wrap: Wrap) -> Any:
    def f(x, w):
        if x.sum() > 0:
            y = (x * w).sum()
        else:
            y = x.sum()
        gx, gw = torch.autograd.grad(y, (x, w), allow_unused=True)
        if gw is None:
            return gx
        return gx + gw

    f = wrap(f)
    return [f(V(*a), V(*P)) for a in (P, N)]


@as_in_eager
def test_unused_error(wrap: Wrap) -> Any:
    def f(x, w):
        if x.sum() > 0:
            y = (x * w).sum()
        else:
            y = x.sum()
        try:
            gx, gw = torch.autograd.grad(y, (x, w))
        except RuntimeError:
            return x * 0
        return gx + gw

    f = wrap(f)
    return [f(V(*a), V(*P)) for a in (P, N)]
