from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.state.stories import BATCH, Static, Two, X, attempt, story, train


@story(programs=5)
def test_hooks_kwargs(static: Static) -> Any:
    m = static(Two())
    o = []

    def pre(mod, args, kwargs):
        kwargs = dict(kwargs)
        kwargs["k"] = kwargs.get("k", 1.0) * 3
        return (args, kwargs)

    def post(mod, args, kwargs, out):
        return out + kwargs["k"]

    h = m.register_forward_pre_hook(pre, with_kwargs=True)
    o.append(m(BATCH))
    o.append(m(BATCH, k=2.0))
    g = m.register_forward_hook(post, with_kwargs=True)
    o.append(m(BATCH, k=2.0))
    o.append(m(BATCH))
    h.remove()
    g.remove()
    o.append(m(BATCH, k=2.0))
    return o


@story(programs=3)
def test_hooks_inner_kwargs(static: Static) -> Any:

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Two()

        def forward(self, x):
            return self.t(x, k=2.0)

    m = static(Outer())
    o = []

    def pre(mod, args, kwargs):
        kwargs = dict(kwargs)
        kwargs["k"] = kwargs.get("k", 1.0) * 3
        return (args, kwargs)

    def post(mod, args, kwargs, out):
        return out + kwargs["k"]

    h = m.t.register_forward_pre_hook(pre, with_kwargs=True)
    o.append(m(BATCH))
    g = m.t.register_forward_hook(post, with_kwargs=True)
    o.append(m(BATCH))
    o.append(m(BATCH))
    h.remove()
    g.remove()
    o.append(m(BATCH))
    return o


@story(programs=1)
def test_hooks_always_call(static: Static) -> Any:

    class Bad(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                raise ValueError("no")
            return x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Bad()
            self.seen = 0

        def forward(self, x):
            return self.t(x)

    m = Outer()
    m.t.count = 0

    def hook2(mod, a, out):
        mod.count += 1

    m.t.register_forward_hook(hook2, always_call=True)
    m = static(m)
    o = [attempt(m, X * k) for k in (1, -1, 1, -1)]
    return (o, m.t.count)


@story(programs=1)
def test_hooks_always_call_eager_raise(static: Static) -> Any:

    class Bad(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Bad()
            self.seen = 0

        def forward(self, x):
            try:
                return self.t(x)
            except ValueError:
                return x * 2

    m = Outer()
    m.t.count = 0

    def hook2(mod, a, out):
        mod.count += 1

    m.t.register_forward_hook(hook2, always_call=True)
    m = static(m)
    o = [attempt(m, X * k) for k in (1, -1, 1, -1)]
    return (o, m.t.count)


@story(programs=1)
def test_hooks_prepend(static: Static) -> Any:
    m = Two()
    m.a.register_forward_hook(lambda mod, i, o: o + 1)
    m.a.register_forward_hook(lambda mod, i, o: o * 2, prepend=True)
    m.a.register_forward_pre_hook(lambda mod, i: (i[0] + 1,))
    m.a.register_forward_pre_hook(lambda mod, i: (i[0] * 2,), prepend=True)
    m = static(m)
    return train(m)


@story(programs=2)
def test_hooks_state(static: Static) -> Any:
    m = Two()
    acts = {}
    m.a.register_forward_hook(lambda mod, i, o: acts.__setitem__("a", o.detach()))

    def count(mod, i):
        mod.n = getattr(mod, "n", 0) + 1

    m.n = 0
    m.register_forward_pre_hook(count)
    m = static(m)
    r = train(m)
    return (r, acts, m.n)


@story(programs=1)
def test_hooks_inner_count(static: Static) -> Any:
    m = Two()
    m.a.n = 0
    m.a.outs = []

    def count(mod, i):
        mod.n += 1

    def keep(mod, i, o):
        mod.outs.append(o.mean().item())

    m.a.register_forward_pre_hook(count)
    m.a.register_forward_hook(keep)
    m = static(m)
    r = train(m)
    return (r, m.a.n, m.a.outs)


@story(programs=1)
def test_hooks_cond(static: Static) -> Any:
    m = Two()
    m.a.register_forward_hook(lambda mod, i, o: o * 2 if o.sum() > 0 else None)
    m = static(m)
    return (m(BATCH), m(-BATCH), m(BATCH * 3))


@story(programs=2)
def test_hooks_in_sequential(static: Static) -> Any:
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    m[1].register_forward_hook(lambda mod, i, o: o + 1)
    m = static(m)
    o = [m(BATCH)]
    m[0].register_forward_hook(lambda mod, i, o: o * 3)
    o.append(m(BATCH))
    m[0]._forward_hooks.clear()
    o.append(m(BATCH))
    return o


@story(programs=2)
def test_hooks_torch_container(static: Static) -> Any:
    m = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
    m.linear1.register_forward_hook(lambda mod, i, o: o * 3)
    x = torch.randn(2, 3, 4)
    m = static(m)
    o = [m(x)]
    m.eval()
    o.append(m(x))
    m.train()
    o.append(m(x))
    return o


@story(programs=1)
def test_hooks_register_in_forward(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)

        def forward(self, x):
            seen = []
            h = self.l.register_forward_hook(lambda mod, i, o: seen.append(o))
            try:
                y = self.l(x)
            finally:
                h.remove()
            return y + seen[0]

    m = static(M())
    return train(m)
