from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.state.stories import XS, Static, X, attempt, state, story

G = 0


@story(programs=1)
def test_arm_counter(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.pos = 0
            self.neg = 0
            self.last = None

        def forward(self, x):
            if x.sum() > 0:
                self.pos += 1
            else:
                self.neg += 1
            return x * self.pos - self.neg

    m = static(M())
    return ([m(X * k) for k in (1, -1, 1, 1, -1)], m.pos, m.neg)


@story(programs=1)
def test_stats_dict_arm(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.stats = {"pos": 0, "neg": 0}

        def forward(self, x):
            if x.sum() > 0:
                self.stats["pos"] += 1
            else:
                self.stats["neg"] += 1
            return x

    m = static(M())
    return ([m(x) for x in XS], m.stats)


@story(programs=1)
def test_list_arm(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            if x.sum() > 0:
                self.h.append(x.sum().item())
            return x

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=2)
def test_list_arm_cleared(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            self.h.append(x)
            if x.sum() < 0:
                self.h.clear()
            return len(self.h)

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=1)
def test_buf_arm(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.zeros(3))
            self.register_buffer("n", torch.tensor(0))
            self.initted = False

        def forward(self, x):
            if not self.initted:
                self.b.copy_(x)
                self.initted = True
            if x.sum() > 0:
                self.b.lerp_(x, 0.5)
                self.n += 1
            else:
                self.b = self.b * 2
            return self.b.clone()

    m = static(M())
    return ([m(x) for x in XS], m.b, m.n, list(m.state_dict()))


@story(programs=1)
def test_buf_register_arm(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                self.register_buffer("b", x * 1)
            else:
                self.register_buffer("b", x * 2)
            return self.b

    m = static(M())
    return ([m(X)], state(m))


@story(programs=1)
def test_loop_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.iters = 0
            self.register_buffer("best", torch.tensor(float("inf")))
            self.tr = None

        def forward(self, x):
            while x.norm() > 1:
                x = x / 2
                self.iters += 1
                self.best = torch.minimum(self.best, x.norm())
            return x

    m = static(M())
    return ([m(x) for x in [X, X * 0, X * 10, X * 0.1, X]], m.iters, m.best)


@story(programs=3)
def test_loop_list_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.tr = []

        def forward(self, x):
            self.tr = []
            while x.norm() > 1:
                x = x / 2
                self.tr.append(x.norm().item())
            return x

    m = static(M())
    return [(m(x), list(m.tr)) for x in [X, X * 0, X * 10, X * 0.1, X]]


@story(programs=1)
def test_dict_in_loop(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.stats = {"it": 0, "last": 0.0}

        def forward(self, x):
            while x.norm() > 1:
                x = x / 2
                self.stats["it"] += 1
                self.stats["last"] = x.norm().item()
            return x

    m = static(M())
    return ([m(x) for x in XS], m.stats)


@story(programs=1)
def test_raise_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.bad = 0
            self.register_buffer("b", torch.zeros(3))
            self.l = []

        def forward(self, x):
            self.n += 1
            self.b += x
            self.l.append(self.n)
            if x.sum() < 0:
                self.bad += 1
                raise ValueError("neg")
            self.n += 10
            return x

    m = static(M())
    return ([attempt(m, x) for x in XS], m.n, m.bad, m.b, m.l)


@story(programs=1)
def test_raise_caught(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.bad = 0

        def forward(self, x):
            try:
                self.n += 1
                if x.sum() < 0:
                    raise ValueError("neg")
                self.n += 10
            except ValueError:
                self.bad += 1
            finally:
                self.n += 100
            return x * self.n

    m = static(M())
    return ([attempt(m, x) for x in XS], m.n, m.bad)


@story(programs=1)
def test_state_in_staged_raise_if(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.stats = {"ok": 0, "bad": 0}
            self.log = []

        def forward(self, x):
            self.stats["ok"] += 1
            if x.sum() < 0:
                self.stats["bad"] += 1
                self.log.append(x.sum().item())
                raise RuntimeError(f"bad {self.stats['bad']}")
            return x

    m = static(M())
    return ([attempt(m, x) for x in XS], m.stats, m.log)


@story(programs=1)
def test_global_arm(static: Static) -> Any:
    global G
    G = 0

    def f(x):
        global G
        if x.sum() > 0:
            G += 1
        return x * G

    f = static(f)
    return ([f(x) for x in XS], G)
