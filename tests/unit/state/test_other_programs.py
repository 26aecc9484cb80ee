"""What changes between calls, so that another program is needed: hooks, tables, constants that a call replaces."""

from __future__ import annotations

import enum
from typing import Any

import torch
from torch import nn

from tests.unit.state.stories import BATCH, XS, Static, Two, X, state, story, train


@story(programs=8)
def test_register_buffer_fwd(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            if not hasattr(self, "b"):
                self.register_buffer("b", torch.zeros_like(x))
                self.register_buffer("c", x.clone(), persistent=False)
            self.b += x
            return self.b + self.c

    m = static(M())
    o = [m(X), m(X * 2), m(X)]
    return (o, state(m), m._non_persistent_buffers_set)


@story(programs=8)
def test_hooks_basic(static: Static) -> Any:
    m = static(Two())
    o = [m(BATCH)]
    h = m.a.register_forward_hook(lambda mod, i, out: out * 2)
    o.append(m(BATCH))
    h2 = m.b.register_forward_pre_hook(lambda mod, i: (i[0] + 1,))
    o.append(m(BATCH))
    h.remove()
    o.append(m(BATCH))
    h2.remove()
    o.append(m(BATCH))
    h = m.a.register_forward_hook(lambda mod, i, out: out * 5)
    o.append(m(BATCH))
    h.remove()
    h = m.a.register_forward_hook(lambda mod, i, out: out * 7)
    o.append(m(BATCH))
    h.remove()
    return o


@story(programs=8)
def test_hooks_global(static: Static) -> Any:
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    m = static(Two())
    o = [m(BATCH)]
    h = register_module_forward_hook(lambda mod, i, out: out + 1 if isinstance(mod, nn.Linear) else None)
    try:
        o.append(m(BATCH))
    finally:
        h.remove()
    o.append(m(BATCH))
    h = register_module_forward_pre_hook(lambda mod, i: (i[0] * 2,))
    try:
        o.append(m(BATCH))
    finally:
        h.remove()
    o.append(m(BATCH))
    return o


@story(programs=8)
def test_hooks_global_first(static: Static) -> Any:
    from torch.nn.modules.module import register_module_forward_hook

    m = static(Two())
    h = register_module_forward_hook(lambda mod, i, out: out + 1 if isinstance(mod, nn.Linear) else None)
    try:
        o = [m(BATCH)]
    finally:
        h.remove()
    o.append(m(BATCH))
    return o


@story(programs=8)
def test_hooks_global_cond(static: Static) -> Any:
    from torch.nn.modules.module import register_module_forward_hook

    class C(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x + 1
            return x - 1

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = C()

        def forward(self, x):
            return self.c(x)

    m = static(Outer())
    h = register_module_forward_hook(lambda mod, i, out: out + 1 if isinstance(mod, C) else None)
    try:
        o = [m(BATCH), m(-BATCH)]
    finally:
        h.remove()
    o.append(m(BATCH))
    return o


@story(programs=8)
def test_hooks_backward_later(static: Static) -> Any:
    m = static(Two())
    x = BATCH.clone().requires_grad_()
    m(x).sum().backward()
    g1 = x.grad.clone()
    x.grad = None
    h = m.a.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
    m(x).sum().backward()
    g2 = x.grad.clone()
    x.grad = None
    h.remove()
    m(x).sum().backward()
    return (g1, g2, x.grad, [p.grad for p in m.parameters()])


@story(programs=8)
def test_named_params_in_fwd(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Two()
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            reg = sum(((p**2).sum() for n, p in self.named_parameters() if "weight" in n))
            return self.t(x) + reg + sum(b.sum() for b in self.buffers())

    m = static(M())
    o = train(m)
    m.t.a = nn.Linear(3, 3, bias=False)
    o += train(m)
    m.t.register_parameter("extra_weight", nn.Parameter(torch.ones(2)))
    o += train(m)
    m.register_buffer("c", torch.ones(2))
    o += train(m)
    return o


@story(programs=8)
def test_enum_state(static: Static) -> Any:

    class P(enum.Enum):
        A = 1
        B = 2

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ph = P.A

        def forward(self, x):
            if self.ph is P.A:
                self.ph = P.B
                return x
            self.ph = P.A
            return -x

    m = static(M())
    return ([m(x) for x in XS], m.ph.name)


@story(programs=8)
def test_init_subclass_weird(static: Static) -> Any:

    class Cnt:
        def __get__(self, o, t):
            return o.__dict__.get("_c", 0)

        def __set__(self, o, v):
            o.__dict__["_c"] = v

    class M(nn.Module):
        c = Cnt()

        def forward(self, x):
            self.c = self.c + 1
            return x * self.c

    m = static(M())
    return ([m(x) for x in XS[:3]], m._c)


@story(programs=8)
def test_setattr_builtin(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            for i in range(2):
                setattr(self, f"v{i}", getattr(self, f"v{i}", 0) + i + 1)
                setattr(self, f"t{i}", x * i)
            return x * self.v0 * self.v1

    m = static(M())
    return ([m(x) for x in XS[:3]], m.v0, m.v1, m.t0, m.t1)


@story(programs=8)
def test_np_state(static: Static) -> Any:
    import numpy as np

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = np.zeros(3)

        def forward(self, x):
            self.a = self.a + 1
            return x * torch.from_numpy(self.a).float()

    m = static(M())
    return ([m(x) for x in XS[:3]], m.a)
