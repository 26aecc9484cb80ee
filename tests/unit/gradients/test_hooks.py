"""Hooks on tensors and modules, put on inside the captured function and outside."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager, refused


@as_in_eager
def test_hook_outside(wrap: Wrap) -> Any:
    log = []

    def f(x):
        if x.sum() > 0:
            return x * x
        return x * 3

    f = wrap(f)
    for a in (P, N):
        x = V(*a)
        h = x * 1
        h.register_hook(lambda g: log.append(g.clone()))
        h.retain_grad()
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
        y = f(h)
        y.register_hook(lambda g: g * 5)
        y.sum().backward()
        log.append((x.grad, h.grad))
    return log


@as_in_eager
def test_hook_log_outer(wrap: Wrap) -> Any:
    log = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: log.append(g.clone()))
        if x.sum() > 0:
            y = y * x
        return y

    f = wrap(f)
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        log.append(x.grad)
    return log


@as_in_eager
def test_hook_log_bound(wrap: Wrap) -> Any:
    log = []

    def f(x):
        y = x * 2
        y.register_hook(log.append)
        if x.sum() > 0:
            y = y * x
        return y

    f = wrap(f)
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        log.append(x.grad)
    return log


@as_in_eager
def test_hook_closure_staged(wrap: Wrap) -> Any:
    def f(x):
        limit = x.abs().max().detach() * 2
        y = x * 2
        y.register_hook(lambda g: g.clamp(-limit, limit))
        if x.sum() > 0:
            y = y * x * x
        return y

    f = wrap(f)
    out = []
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_hook_closure_staged_number(wrap: Wrap) -> Any:
    def f(x):
        k = x.abs().max().item()
        y = x * 2
        y.register_hook(lambda g: g * k)
        if x.sum() > 0:
            y = y * x * x
        return y

    f = wrap(f)
    out = []
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_hook_default_arg(wrap: Wrap) -> Any:
    def f(x):
        y = x * 2
        lim = x.detach().abs().sum()

        def hook(g, lim=lim):
            return g * lim

        y.register_hook(hook)
        return y * y

    f = wrap(f)
    out = []
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_hook_self(wrap: Wrap) -> Any:
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = []
            self.lin = nn.Linear(3, 3).double()
            self.scale = 1.0

        def save(self, g):
            self.norms.append(g.norm())
            return g * self.scale

        def forward(self, x):
            h = self.lin(x)
            if h.requires_grad:
                h.register_hook(self.save)
            if h.sum() > 0:
                h = h * 2
            return h

    m = M()
    s = wrap(m)
    out = []
    for i, a in enumerate((P, N, P)):
        m.scale = 1.0 + i
        x = V(*a)
        s(x).sum().backward()
        out.append((x.grad, list(m.norms)))
    return out


@as_in_eager
def test_hook_handle_removed(wrap: Wrap) -> Any:
    def f(x):
        y = x * 2
        h = y.register_hook(lambda g: g * 10)
        if x.sum() > 0:
            h.remove()
        return y * y

    f = wrap(f)
    out = []
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_hook_on_param(wrap: Wrap) -> Any:
    w = V(2.0, 2.0, 2.0)
    log = []

    def f(x):
        w.register_hook(lambda g: log.append(g.clone()))
        if x.sum() > 0:
            return x * w
        return x

    f = wrap(f)
    out = []
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        out.append((x.grad, len(log)))
    return out, log, w.grad


@as_in_eager
def test_hook_in_loop(wrap: Wrap) -> Any:
    log = []

    def f(x, n):
        h = x
        for _i in range(n):
            h = h * x
            h.register_hook(lambda g: log.append(g.sum()))
        return h

    f = wrap(f)
    for a in (P, N, P):
        x = V(*a)
        f(x, torch.tensor(3)).sum().backward()
        log.append(x.grad)
    return log


@as_in_eager
def test_post_acc_inside(wrap: Wrap) -> Any:
    log = []

    def f(x):
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
        if x.sum() > 0:
            return x * x
        return x

    f = wrap(f)
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
    return log


@as_in_eager
def test_hook_in_arm_closure(wrap: Wrap) -> Any:
    def f(x):
        y = x * 2
        if x.sum() > 0:
            k = x.detach().sum()
            y.register_hook(lambda g: g * k)
        return y

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        f(x).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_hook_loop_closure_const(wrap: Wrap) -> Any:
    def scaled(y, k):
        y.register_hook(lambda g: g * k)
        return y

    def f(x, n):
        h = x
        for _i in range(n):
            h = scaled(h * 2, h.detach().abs().sum() + 1)
        return h

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        f(x, torch.tensor(2)).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_hook_partial(wrap: Wrap) -> Any:
    def clip(limit, g):
        return g.clamp(-limit, limit)

    def f(x):
        y = x * 3
        y.register_hook(functools.partial(clip, x.detach().abs().max()))
        return y * y

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        f(x).sum().backward()
        out.append(x.grad)
    return out


@as_in_eager
def test_module_backward_hooks(wrap: Wrap) -> Any:
    log = []
    m = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    m[0].register_full_backward_hook(lambda mod, gi, go: log.append(("full", gi, go)))
    m[2].register_full_backward_pre_hook(lambda mod, go: tuple(g * 2 for g in go))
    m[1].register_full_backward_hook(lambda mod, gi, go: tuple(g * 3 for g in gi))

    def f(x):
        y = m(x)
        if y.sum() > 0:
            y = y * 2
        return y

    f = wrap(f)
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        log.append((x.grad, [p.grad.clone() for p in m.parameters()]))
    return log


@as_in_eager
def test_module_backward_hook_user(wrap: Wrap) -> Any:
    log = []

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3).double()

        def forward(self, x):
            if x.sum() > 0:
                return self.l(x)
            return x * 2

    m = Inner()
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))

    def f(x):
        y = m(x)
        if y.sum() > 0:
            y = y * 2
        return y

    f = wrap(f)
    for a in (P, N, P):
        x = V(*a)
        f(x).sum().backward()
        log.append((x.grad, [p.grad is None or p.grad.clone() for p in m.parameters()]))
    return log


@as_in_eager
def test_module_backward_hook_root(wrap: Wrap) -> Any:
    log = []

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3).double()

        def forward(self, x):
            if x.sum() > 0:
                return self.l(x)
            return x * 2

    m = Inner()
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    s = wrap(m)
    for a in (P, N, P):
        x = V(*a)
        s(x).sum().backward()
        log.append((x.grad, [p.grad is None or p.grad.clone() for p in m.parameters()]))
    return log


def test_a_hook_on_what_the_function_makes_is_refused() -> None:
    def f(x):
        log = []
        y = x * 2
        y.register_hook(lambda g: log.append(g))
        return y, log

    assert "a hook uses a list that the function has made" in refused(f, V(*P))


def test_a_variable_assigned_behind_a_hook_is_refused() -> None:
    def f(x):
        k = x.detach().sum()
        y = x * 2
        y.register_hook(lambda g: g * k)
        k = k + 1
        return y

    assert "a variable that a hook uses is assigned again" in refused(f, V(*P))


def test_a_handle_does_not_leave() -> None:
    assert "a handle that only the run knows is returned" in refused(lambda x: (x * 2).register_hook(abs), V(*P))


def test_a_hook_on_a_node_is_refused() -> None:
    text = refused(lambda x: (x * 2).grad_fn.register_hook(print), V(*P))
    assert "a hook is put on a node of autograd's graph" in text
    assert "hint: Put the hook on the tensor: tensor.register_hook(hook)." in text


def test_hooks_of_the_old_kind_are_refused() -> None:
    module = nn.Linear(3, 3).double()
    module.register_backward_hook(lambda module, given, sent: None)
    assert "a module has a backward hook of the old kind" in refused(lambda x: module(x) * 2, V(*P))
