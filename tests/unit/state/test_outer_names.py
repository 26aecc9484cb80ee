from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.state.stories import XS, Static, X, attempt, story

G = 0


GL = []


GD = {"n": 0}


GT = torch.zeros(3)


@story(programs=1)
def test_class_counter(static: Static) -> Any:

    class M(nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x * self.calls

    m = static(M())
    return ([m(x) for x in XS], M.calls)


@story(programs=1)
def test_class_counter_name(static: Static) -> Any:

    class M(nn.Module):
        calls = 0
        seen = []  # noqa: RUF012  # as people write it

        def forward(self, x):
            M.calls += 1
            M.seen.append(M.calls)
            self.__class__.last = x
            return x * M.calls

    M.last = None
    m = static(M())
    return ([m(x) for x in XS], M.calls, M.seen, M.last)


@story(programs=1)
def test_class_counter_arm(static: Static) -> Any:

    class M(nn.Module):
        calls = 0

        def forward(self, x):
            if x.sum() > 0:
                type(self).calls += 1
            return x

    m = static(M())
    return ([m(x) for x in XS], M.calls)


@story(programs=1)
def test_classmethod_counter(static: Static) -> Any:

    class M(nn.Module):
        calls = 0

        @classmethod
        def bump(cls):
            cls.calls += 1
            return cls.calls

        def forward(self, x):
            return x * self.bump()

    m = static(M())
    return ([m(x) for x in XS], M.calls)


@story(programs=2)
def test_class_default(static: Static) -> Any:

    class M(nn.Module):
        n = 0

        def forward(self, x):
            self.n += 1
            return x * self.n

    m = static(M())
    return ([m(x) for x in XS], m.n, M.n)


@story(programs=2)
def test_class_default_obj(static: Static) -> Any:

    class Outer:
        n = 0
        t = None

    o = Outer()

    def f(x):
        o.n += 1
        o.t = x if o.t is None else o.t + x
        return o.t * o.n

    f = static(f)
    return ([f(x) for x in XS], o.n, Outer.n, o.t)


@story(programs=2)
def test_class_state_loop(static: Static) -> Any:

    class M(nn.Module):
        it = 0
        best = None

        def forward(self, x):
            while x.norm() > 1:
                x = x / 2
                M.it += 1
            type(self).best = x.norm() if M.best is None else torch.minimum(M.best, x.norm())
            return x

    m = static(M())
    return ([m(x) for x in XS], M.it, M.best)


@story(programs=1)
def test_class_raise(static: Static) -> Any:

    class M(nn.Module):
        bad = 0

        def forward(self, x):
            if x.sum() < 0:
                M.bad += 1
                raise ValueError("x")
            return x

    m = static(M())
    return ([attempt(m, x) for x in XS], M.bad)


@story(programs=3)
def test_class_list(static: Static) -> Any:

    class Reg:
        items = []  # noqa: RUF012  # as people write it
        table = {}  # noqa: RUF012  # as people write it
        n = 0

        @classmethod
        def add(cls, v):
            cls.items.append(v)
            cls.table[cls.n] = v
            cls.n += 1

        @staticmethod
        def total():
            return sum(Reg.items)

    def f(x):
        Reg.add(x.sum().item())
        return x * Reg.total()

    g = static(f)
    return ([g(x) for x in XS[:3]], Reg.items, Reg.table, Reg.n)


@story(programs=5)
def test_inherit_class(static: Static) -> Any:

    class A(nn.Module):
        count = 0

        def forward(self, x):
            type(self).count += 1
            return x * type(self).count

    class B1(A):
        pass

    class C(A):
        pass

    b, c = (static(B1()), static(C()))
    o = [b(X), c(X), b(X), b(X), c(X)]
    return (o, A.count, B1.count, C.count)


@story(programs=1)
def test_global_counter(static: Static) -> Any:
    global G, GT
    G = 0
    GL.clear()
    GD["n"] = 0
    GT = torch.zeros(3)

    def f(x):
        global G, GT
        G += 1
        GL.append(G)
        GD["n"] += 1
        GT = GT + x
        return x * G + GT

    f = static(f)
    return ([f(x) for x in XS], G, list(GL), dict(GD), GT)


@story(programs=1)
def test_module_attr(static: Static) -> Any:
    import tests.unit.state.stories as stories

    stories.NN = 0

    def f(x):
        stories.NN += 1
        return x * stories.NN

    f = static(f)
    return ([f(x) for x in XS], stories.NN)


@story(programs=2)
def test_closure_nonlocal(static: Static) -> Any:

    def make():
        n = 0
        t = torch.zeros(3)
        seen = []  # as people write it
        d = {}

        def f(x):
            nonlocal n, t
            n += 1
            t = t + x
            seen.append(n)
            d["n"] = n
            if x.sum() > 0:
                n += 10
            return t * n

        return (f, lambda: (n, t, seen, d))

    f, look = make()
    f = static(f)
    return ([f(x) for x in XS], look())


@story(programs=1)
def test_closure_helper(static: Static) -> Any:

    def make():
        n = 0

        def bump():
            nonlocal n
            n += 1
            return n

        def f(x):
            return x * bump()

        return (f, lambda: n)

    f, look = make()
    f = static(f)
    return ([f(x) for x in XS], look())


@story(programs=1)
def test_func_attr(static: Static) -> Any:

    def f(x):
        f.n += 1
        return x * f.n

    f.n = 0
    g = static(f)
    return ([g(x) for x in XS], f.n)
