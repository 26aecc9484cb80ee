from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import torch
from torch import nn

from tests.unit.state.stories import XS, Static, X, story


@story(programs=1)
def test_counter_int(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            return x * self.step

    m = static(M())
    return ([m(X) for _ in range(5)], m.step)


@story(programs=1)
def test_counter_float(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = 0.5

        def forward(self, x):
            self.t *= 1.5
            return (x * self.t, self.t)

    m = static(M())
    return ([m(X) for _ in range(5)], m.t)


@story(programs=1)
def test_step_mod(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            if self.step % 3 == 0:
                x = x * 10
            return x

    m = static(M())
    return ([m(X) for _ in range(8)], m.step)


@story(programs=1)
def test_warmup(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0
            self.lr = 0.0

        def forward(self, x):
            self.step += 1
            self.lr = min(1.0, self.step / 4) if self.step < 6 else 0.5 * (1 + math.cos(math.pi * self.step / 10))
            return x * self.lr

    m = static(M())
    return ([m(X) for _ in range(8)], m.step, m.lr)


@story(programs=1)
def test_int_index(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = 0
            self.register_buffer("ring", torch.zeros(4, 3))

        def forward(self, x):
            self.ring[self.i % 4] = x
            self.i += 1
            return self.ring.mean(0)

    m = static(M())
    return ([m(x) for x in XS], m.i, m.ring)


@story(programs=1)
def test_int_slice(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = 0
            self.register_buffer("ring", torch.zeros(8, 3))

        def forward(self, x):
            self.ring[self.i] = x
            self.i += 1
            return self.ring[: self.i].mean(0)

    m = static(M())
    return ([m(x) for x in XS], m.i, m.ring)


@story(programs=5)
def test_int_list_index(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = 0
            self.ls = nn.ModuleList([nn.Identity(), nn.ReLU(), nn.Tanh()])

        def forward(self, x):
            y = self.ls[self.i % 3](x)
            self.i += 1
            return y

    m = static(M())
    return ([m(x) for x in XS], m.i)


@story(programs=1)
def test_int_range(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.depth = 1

        def forward(self, x):
            for k in range(self.depth):
                x = x * 2 + k
            self.depth += 1
            return x

    m = static(M())
    return ([m(x) for x in XS], m.depth)


@story(programs=1)
def test_int_shape(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 1

        def forward(self, x):
            self.n += 1
            return (x.repeat(self.n), torch.zeros(self.n))

    m = static(M())
    return ([m(x) for x in XS], m.n)


@story(programs=1)
def test_int_reset(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            if self.n == 3:
                self.n = 0
            return x * self.n

    m = static(M())
    return ([m(x) for x in XS], m.n)


@story(programs=2)
def test_int_to_float(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n = self.n + 0.5
            return x * self.n

    m = static(M())
    return ([m(x) for x in XS], m.n)


@story(programs=2)
def test_number_to_tensor(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n = self.n + x.sum()
            return x * self.n

    m = static(M())
    return ([m(x) for x in XS], m.n)


@story(programs=2)
def test_str_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ph = "warm"

        def forward(self, x):
            if self.ph == "warm":
                self.ph = "hot"
                return x
            return -x

    m = static(M())
    return ([m(x) for x in XS], m.ph)


@story(programs=1)
def test_bool_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.flag = False

        def forward(self, x):
            y = x if self.flag else -x
            self.flag = not self.flag
            return y

    m = static(M())
    return ([m(x) for x in XS], m.flag)


@story(programs=1)
def test_bool_state_tensor(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.flag = False

        def forward(self, x):
            y = x if self.flag else -x
            self.flag = bool(x.sum() > 0)
            return y

    m = static(M())
    return ([m(x) for x in XS], m.flag)


@story(programs=1)
def test_tensor_0d_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = torch.tensor(0)

        def forward(self, x):
            self.c = self.c + 1
            if self.c % 2 == 0:
                return x
            return -x

    m = static(M())
    return ([m(x) for x in XS], m.c)


@story(programs=3)
def test_log_every(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0
            self.log = []

        def forward(self, x):
            self.step += 1
            if self.step % 2 == 0:
                self.log.append((self.step, x.mean().item()))
                print("step", self.step)
            return x * self.step

    m = static(M())
    b = io.StringIO()
    with contextlib.redirect_stdout(b):
        r = [m(x) for x in XS]
    return (r, m.step, m.log, b.getvalue())


@story(programs=1)
def test_state_inf(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.best = float("inf")
            self.bad = 0

        def forward(self, x):
            loss = x.sum().item()
            if loss < self.best:
                self.best = loss
                self.bad = 0
            else:
                self.bad += 1
            return (x * self.bad, self.bad >= 2)

    m = static(M())
    return ([m(x) for x in XS], m.best, m.bad)


@story(programs=2)
def test_state_none_number(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.best = None
            self.bad = 0

        def forward(self, x):
            loss = x.sum().item()
            if self.best is None or loss < self.best:
                self.best = loss
                self.bad = 0
            else:
                self.bad += 1
            return (x * self.bad, self.bad >= 2)

    m = static(M())
    return ([m(x) for x in XS], m.best, m.bad)


@story(programs=2)
def test_last_none(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            if self.last is None:
                self.last = torch.zeros_like(x)
            y = x - self.last
            self.last = x.clone()
            return y

    m = static(M())
    return ([m(X * k) for k in (1, -1, 1, 1, -1)], m.last)


@story(programs=2)
def test_delattr_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.tmp = None

        def forward(self, x):
            self.tmp = x * 2
            y = self.tmp + 1
            del self.tmp
            return y

    m = static(M())
    return ([m(x) for x in XS[:3]], hasattr(m, "tmp"))


@story(programs=4)
def test_vars_dict(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.__dict__["n"] += 1
            return x * self.n

    m = static(M())
    return ([m(x) for x in XS[:4]], m.n)
