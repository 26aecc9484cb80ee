"""What a captured function makes of leaves: it turns ``requires_grad``, and writes in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager


@as_in_eager
def test_requires_grad_inside(wrap: Wrap) -> Any:
    def f(x):
        y = x.detach().clone().requires_grad_()
        z = (y * y).sum()
        if x.sum() > 0:
            z = z * 2
        return z, y

    f = wrap(f)
    out = []
    for a in (P, N):
        z, y = f(V(*a))
        z.backward()
        out.append((z, y, y.grad, y.is_leaf))
    return out


@as_in_eager
def test_new_param_inside(wrap: Wrap) -> Any:
    def f(x):
        w = nn.Parameter(torch.ones(3, dtype=torch.float64))
        z = (x * w).sum()
        if z > 0:
            z = z * 2
        return z, w

    f = wrap(f)
    out = []
    for a in (P, N):
        z, y = f(V(*a))
        z.backward()
        out.append((z, type(y).__name__, y.grad, y.is_leaf))
    return out


@as_in_eager
def test_input_mutation(wrap: Wrap) -> Any:
    def f(x, buf):
        buf.add_(x.detach())
        if x.sum() > 0:
            buf.mul_(2)
        return x * buf

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        b = V(*P, g=False)
        y = f(x, b)
        y.sum().backward()
        out.append((y, b, x.grad))
    return out


@as_in_eager
def test_input_mutation_grad(wrap: Wrap) -> Any:
    def f(x, buf):
        buf.add_(x * x)
        if x.sum() > 0:
            buf.mul_(x)
        return buf * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        b = V(*P, g=False)
        y = f(x, b)
        y.sum().backward()
        out.append((y, b, b.requires_grad, x.grad))
    return out


@as_in_eager
def test_input_mutation_grad_inarm(wrap: Wrap) -> Any:
    def f(x, buf):
        if x.sum() > 0:
            buf.mul_(x)
        return buf * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        b = V(*P, g=False)
        y = f(x, b)
        out.append((y, b.requires_grad, y.requires_grad))
        if y.requires_grad:
            y.sum().backward()
            out.append((b, x.grad))
    return out


@as_in_eager
def test_data_inplace(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            x.data.add_(1)
        return x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((x, x.grad, y))
    return out


@as_in_eager
def test_arm_local_leaf(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            y = x.detach().clone().requires_grad_()
            (y**3).sum().backward()
            g = y.grad
        else:
            g = x.detach() * 0
        return g * 2

    f = wrap(f)
    return [f(V(*a)) for a in (P, N)]


@as_in_eager
def test_input_optim_adversarial(wrap: Wrap) -> Any:
    net = nn.Linear(3, 2).double()

    def attack(x, eps):
        adv = x.clone().detach()
        for _i in range(4):
            adv.requires_grad_(True)
            loss = net(adv).logsumexp(-1).sum()
            g = torch.autograd.grad(loss, adv)[0]
            adv = adv.detach() + eps * g.sign()
            adv = torch.min(torch.max(adv, x - 0.3), x + 0.3)
            if net(adv).argmax() == 1:
                break
        return adv

    attack = wrap(attack)
    return [attack(V(*a, g=False), 0.1) for a in (P, N)]


@as_in_eager
def test_require_arm(wrap: Wrap) -> Any:
    def f(x):
        y = x.detach().clone()
        z = y
        if x.sum() > 0:
            y.requires_grad_()
        w = (y * 2).sum()
        return w, y, z

    f = wrap(f)
    out = []
    for a in (P, N):
        w, y, z = f(V(*a))
        out.append((w.requires_grad, y.requires_grad, y is z))
        if w.requires_grad:
            w.backward()
            out.append(y.grad)
    return out


@as_in_eager
def test_require_both(wrap: Wrap) -> Any:
    def f(x):
        y = x.detach().clone()
        if x.sum() > 0:
            y.requires_grad = True
        else:
            y.requires_grad_(True)
            y = y * 1
        return torch.autograd.grad((y * y).sum(), y)

    f = wrap(f)
    return [f(V(*a)) for a in (P, N)]


@as_in_eager
def test_require_param_freeze(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()

    def f(x):
        if x.sum() > 0:
            lin.weight.requires_grad_(False)
        return lin(x).sum()

    f = wrap(f)
    out = []
    for a in (N, P, N, P):
        loss = f(V(*a))
        loss.backward()
        out.append((lin.weight.requires_grad, lin.weight.grad is None or lin.weight.grad.clone()))
    return out


@as_in_eager
def test_frozen_toggle(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()

    def f(x):
        lin.requires_grad_(False)
        a = lin(x).sum()
        lin.requires_grad_(True)
        if a > 0:
            a = a + lin(x * 2).sum()
        return a

    f = wrap(f)
    out = []
    for a in (N, P, N, P):
        lin.zero_grad()
        x = V(*a)
        loss = f(x)
        loss.backward()
        out.append((x.grad, lin.weight.requires_grad, lin.weight.grad))
    return out
