from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg
from tests.cases.compare import assert_same
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


def flag() -> Any:
    """A flag that the function reads, and another one writes."""
    first = True

    def done():
        nonlocal first
        first = False

    def f(x):
        if first:
            done()
            return x * 100
        return x

    return f, lambda: first


def number() -> Any:
    """A number that is read, computed with and only then written."""
    n = 5

    def next_one(v):
        nonlocal n
        n = v

    def f(x):
        r, y = n, x * n
        next_one(n + 1)
        return r, y

    return f, lambda: n


def methods() -> Any:
    """A number that methods of one object read and write."""
    n = 5

    class Counter:
        def step(self):
            nonlocal n
            n += 1

        def get(self):
            return n

    counter = Counter()

    def f(x):
        r = counter.get()
        counter.step()
        return x * r, r

    return f, counter.get


def kinds() -> Any:
    """A number that becomes one of another type, a text and None."""
    n = 1
    later = iter((2, 2.5, True, "a", None, 3))

    def put(v):
        nonlocal n
        n = v

    def f(x):
        r = n
        put(x)
        return r

    def look():
        put(next(later))

    return f, look


def copies() -> Any:
    """Functions of one code, one of which calls another that writes what the first has read."""

    def make(n, other):
        def f(x):
            nonlocal n
            r = n
            if other is not None:
                x = other(x)
            n += 1
            return x * r

        return f

    inner = make(3, None)
    return make(5, inner), lambda: inner(X)


@pytest.mark.parametrize("make", [flag, number, methods, kinds, copies])
@pytest.mark.parametrize("full", [True, False])
def test_numbers_of_closures_that_are_read_before_another_function_writes_them(
    make: Callable[[], Any], full: bool
) -> None:
    options: dict[str, Any] = {} if full else {"full_graph": False, "strict": True}
    eager, expected = make()
    static, actual = make()
    static = sg.to_static(static, backend="eager", **options)
    for x in XS:
        assert_same(eager(x), static(x))
        assert_same(expected(), actual())


def test_a_variable_of_a_closure_that_is_left_unset() -> None:
    def make() -> Any:
        n = 3

        def drop(v):
            nonlocal n
            if v > 3:
                del n
            else:
                n = v

        def f(x, v):
            try:
                r = n
            except NameError as error:
                r = str(error)
            drop(v)
            return r

        return f

    with pytest.raises(sg.CaptureError, match="'n', a variable of a function around, is left unset"):
        sg.to_static(make(), backend="eager")(X, 4)
    eager, static = make(), sg.to_static(make(), full_graph=False, strict=True, backend="eager")
    for v in (1, 2, 4, 2, 5, 1, 4, 3):
        assert eager(X, v) == static(X, v)


@story(programs=2)
def test_a_variable_of_a_closure_that_is_unset_at_first(static: Static) -> Any:
    def make():
        n = None
        del n

        def put(v):
            nonlocal n
            n = v

        def f(x):
            try:
                r = n
            except NameError as error:
                r = str(error)
            put(x)
            return r

        return f

    f = static(make())
    return [f(x) for x in XS]


@story(programs=1)
def test_func_attr(static: Static) -> Any:

    def f(x):
        f.n += 1
        return x * f.n

    f.n = 0
    g = static(f)
    return ([g(x) for x in XS], f.n)
