from __future__ import annotations

import dataclasses
import types
from typing import Any

import torch
from torch import Tensor, nn

from tests.unit.state.stories import XS, Static, story


@dataclasses.dataclass
class St:
    n: int = 0
    ema: Tensor = None
    log: list = dataclasses.field(default_factory=list)


class Helper:
    def __init__(self):
        self.n = 0
        self.t = torch.zeros(3)
        self.l = []

    def add(self, x):
        self.n += 1
        self.t = self.t + x
        self.l.append(self.n)
        return self.t


class SlotHelper:
    __slots__ = ("n", "t")

    def __init__(self):
        self.n = 0
        self.t = torch.zeros(3)

    def add(self, x):
        self.n += 1
        self.t = self.t + x
        return self.t


class SetAttrObj:
    def __init__(self):
        object.__setattr__(self, "log", [])
        object.__setattr__(self, "n", 0)

    def __setattr__(self, k, v):
        self.log.append(k)
        object.__setattr__(self, k, v)


@story(programs=1)
def test_helper_obj(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = Helper()

        def forward(self, x):
            return self.h.add(x) * self.h.n

    m = static(M())
    return ([m(x) for x in XS], vars(m.h))


@story(programs=1)
def test_slot_helper(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = SlotHelper()

        def forward(self, x):
            return self.h.add(x) * self.h.n

    m = static(M())
    return ([m(x) for x in XS], m.h.n, m.h.t)


@story(programs=1)
def test_helper_global_obj(static: Static) -> Any:
    h = Helper()

    def f(x):
        return h.add(x) * h.n

    g = static(f)
    return ([g(x) for x in XS], vars(h))


@story(programs=1)
def test_simple_ns(static: Static) -> Any:
    st = types.SimpleNamespace(n=0, t=torch.zeros(3), d={"k": [0]})

    def f(x):
        st.n += 1
        st.t = st.t + x
        st.d["k"][0] += 1
        st.d["k"].append(0) if False else None
        return st.t * st.n

    g = static(f)
    return ([g(x) for x in XS], vars(st))


@story(programs=1)
def test_callable_obj(static: Static) -> Any:

    class C:
        def __init__(self):
            self.n = 0
            self.t = torch.zeros(3)

        def __call__(self, x):
            self.n += 1
            self.t = self.t + x
            return self.t * self.n

    c = C()
    g = static(c)
    return ([g(x) for x in XS], c.n, c.t)


@story(programs=1)
def test_bound_method(static: Static) -> Any:

    class C:
        def __init__(self):
            self.n = 0

        def step(self, x):
            self.n += 1
            return x * self.n

    c = C()
    g = static(c.step)
    return ([g(x) for x in XS], c.n)


@story(programs=1)
def test_iadd_slots_cls(static: Static) -> Any:

    @dataclasses.dataclass(slots=True)
    class St:
        n: int = 0
        f: float = 0.0

    st = St()

    def f(x):
        st.n += 1
        st.f += x.sum().item()
        return x * st.n

    g = static(f)
    return ([g(x) for x in XS], st.n, st.f)


@story(programs=1)
def test_nested_sub(static: Static) -> Any:

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.register_buffer("b", torch.zeros(3))

        def forward(self, x):
            self.n += 1
            self.b = self.b + x
            return self.b * self.n

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = nn.ModuleList([Inner(), Inner()])
            self.total = 0

        def forward(self, x):
            for i in self.i:
                x = i(x)
            self.total = self.i[0].n + self.i[1].n
            self.i[1].b.add_(1)
            return x

    m = static(M())
    return ([m(x) for x in XS], m.total, [(i.n, i.b) for i in m.i])


@story(programs=1)
def test_shared_sub(static: Static) -> Any:

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.register_buffer("b", torch.zeros(3))

        def forward(self, x):
            self.n += 1
            self.b = self.b + x
            return self.b * self.n

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Inner()
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    m = static(M())
    return ([m(x) for x in XS], m.a.n, m.b.b, list(m.state_dict()))


@story(programs=1)
def test_method_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self._n = 0
            self._b = torch.zeros(3)

        def bump(self, k=1):
            self._n += k
            return self

        @property
        def n(self):
            return self._n

        @n.setter
        def n(self, v):
            self._n = v * 2

        @property
        def double(self):
            self._n += 1
            return self._n * 2

        def forward(self, x):
            self.bump().bump(3)
            self.n = self.n + 1
            return x * self.n + self.double

    m = static(M())
    return ([m(x) for x in XS[:3]], m._n)


@story(programs=2)
def test_setter_cond(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self._n = 0

        @property
        def n(self):
            return self._n

        @n.setter
        def n(self, v):
            if v > 3:
                self._n = 3
            else:
                self._n = v

        def forward(self, x):
            self.n = x.sum().item()
            return x * self.n

    m = static(M())
    return ([m(x) for x in XS[:3]], m._n)


@story(programs=1)
def test_setattr_override(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.o = SetAttrObj()

        def forward(self, x):
            self.o.n = self.o.n + 1
            return x * self.o.n

    m = static(M())
    return ([m(x) for x in XS[:4]], m.o.log, m.o.n)


@story(programs=4)
def test_setattr_override_mod(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def __setattr__(self, k, v):
            if k == "n" and "count" in self.__dict__:
                self.__dict__["count"] += 1
            elif k == "n":
                self.__dict__["count"] = 0
            super().__setattr__(k, v)

        def forward(self, x):
            self.n = self.n + 1
            return x * self.n * self.count

    m = static(M())
    return ([m(x) for x in XS[:4]], m.count, m.n)


@story(programs=3)
def test_setattr_override_cond(static: Static) -> Any:

    class Outer:
        n = 0

        def __setattr__(self, k, v):
            if v > 2:
                v = 2
            super().__setattr__(k, v)

    o = Outer()

    def f(x):
        o.n = x.sum().item()
        return x * o.n

    g = static(f)
    return ([g(x) for x in XS[:4]], o.n)


@story(programs=1)
def test_getattr_override(static: Static) -> Any:

    class Outer:
        def __init__(self):
            self.__dict__["d"] = {"n": 0}

        def __getattr__(self, k):
            try:
                return self.d[k]
            except KeyError:
                raise AttributeError(k) from None

        def __setattr__(self, k, v):
            self.d[k] = v

    o = Outer()

    def f(x):
        o.n = o.n + 1
        return x * o.n

    g = static(f)
    return ([g(x) for x in XS[:4]], o.d)
