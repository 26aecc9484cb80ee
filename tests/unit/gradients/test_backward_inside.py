"""A captured function that calls ``backward`` itself, and reads or writes ``.grad``."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager


@as_in_eager
def test_backward_inside(wrap: Wrap) -> Any:
    w = V(1.0, 2.0, 3.0)

    def f(x):
        loss = (x * w).sum() ** 2
        loss.backward()
        if loss > 10:
            return loss.detach()
        return loss.detach() * 2

    f = wrap(f)
    out = []
    for a in (P, N, (0.1, 0.0, 0.0)):
        out.append((f(V(*a, g=False)), w.grad.clone()))
    return out


@as_in_eager
def test_backward_inside_read_grad(wrap: Wrap) -> Any:
    w = V(1.0, 2.0, 3.0)

    def f(x):
        loss = (x * w).sum() ** 2
        loss.backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
        w.grad = None
        return loss.detach()

    f = wrap(f)
    out = []
    for a in (P, N, (0.1, 0.0, 0.0)):
        out.append((f(V(*a, g=False)), w.detach().clone(), w.grad))
    return out


@as_in_eager
def test_backward_in_arm(wrap: Wrap) -> Any:
    w = V(1.0, 2.0, 3.0)

    def f(x):
        loss = (x * w).sum() ** 2
        if loss > 1:
            loss.backward()
        return loss.detach()

    f = wrap(f)
    out = []
    for a in (P, N, (0.1, 0.0, 0.0)):
        out.append((f(V(*a, g=False)), w.grad.clone()))
    return out


@as_in_eager
def test_read_grad(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        if w.grad is None:
            return x
        return x * w.grad

    f = wrap(f)
    out = []
    for a in (P, N):
        out.append(f(V(*a)))
        (w * w).sum().backward()
    out.append(f(V(*a)))
    w.grad = None
    out.append(f(V(*a)))
    return out


@as_in_eager
def test_set_grad(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        w.grad = x.detach() * 2
        if x.sum() > 0:
            return x
        return x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        out.append((f(V(*a)), w.grad.clone()))
    return out


@as_in_eager
def test_set_grad_arm(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        if x.sum() > 0:
            w.grad = None
        return x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        w.grad = V(*P, g=False)
        out.append((f(V(*a)), w.grad))
    return out


@as_in_eager
def test_while_fit_handwritten(wrap: Wrap) -> Any:
    def fit(w0, x, y):
        w = w0.detach().clone().requires_grad_()
        i = 0
        loss = ((x @ w - y) ** 2).mean()
        while loss > 1e-2 and i < 50:
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad.zero_()
            loss = ((x @ w - y) ** 2).mean()
            i += 1
        return w.detach(), i, w.grad

    fit = wrap(fit)
    torch.manual_seed(0)
    x = torch.randn(8, 3, dtype=torch.float64)
    y = x @ V(1.0, 2.0, 3.0, g=False)
    return [fit(V(*a), x, y) for a in (P, N)]


@as_in_eager
def test_grad_none_check_in_loop(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x, n):
        seen = 0
        for _i in range(n):
            if w.grad is not None:
                seen += 1
            ((w * x).sum()).backward()
        return seen

    f = wrap(f)
    out = []
    for k in (0, 3, 0, 2):
        out.append((f(V(*P, g=False), torch.tensor(k)), w.grad is None or w.grad.clone()))
    w.grad = None
    out.append((f(V(*P, g=False), torch.tensor(2)), w.grad.clone()))
    return out


@as_in_eager
def test_backward_two_heads(wrap: Wrap) -> Any:
    a = nn.Linear(3, 1).double()
    b = nn.Linear(3, 1).double()

    def f(x):
        if x.sum() > 0:
            loss = a(x).sum()
        else:
            loss = b(x).sum()
        loss.backward()
        ga = a.weight.grad
        gb = b.weight.grad
        s = 0.0
        if ga is not None:
            s = s + ga.abs().sum()
        if gb is not None:
            s = s + 10 * gb.abs().sum()
        return s

    f = wrap(f)
    out = []
    for v in (P, N, P):
        for p in (*a.parameters(), *b.parameters()):
            p.grad = None
        out.append((f(V(*v)), [p.grad for p in (*a.parameters(), *b.parameters())]))
    return out


@as_in_eager
def test_backward_inputs_kw(wrap: Wrap) -> Any:
    a = V(*P)
    b = V(*N)

    def f(x):
        ((a * b * x).sum()).backward(inputs=[a])
        return a.grad * 1, b.grad

    f = wrap(f)
    return [f(V(*P, g=False)), f(V(*N, g=False))]


@as_in_eager
def test_autograd_backward_many(wrap: Wrap) -> Any:
    a = V(*P)
    b = V(*N)

    def f(x):
        torch.autograd.backward([(a * x).sum(), (b * a * x)], [None, torch.ones_like(x)])
        if a.grad.sum() > 0:
            return a.grad + 0
        return b.grad + 0

    f = wrap(f)
    return [f(V(*P, g=False)), f(V(*N, g=False)), a.grad, b.grad]


@as_in_eager
def test_retain_and_read(wrap: Wrap) -> Any:
    def f(x):
        h = x * 2
        h.retain_grad()
        loss = (h * h).sum()
        if loss > 1:
            loss = loss * 3
        loss.backward()
        return h.grad + 0, x.grad + 0

    f = wrap(f)
    return [f(V(*P)), f(V(0.1, 0.1, 0.1))]
