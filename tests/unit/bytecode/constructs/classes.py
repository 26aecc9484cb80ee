"""Classes made in functions, and what attributes do."""
# ruff: noqa  (every way to write Python is what this file is for)

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import typing
from typing import Any

from tests.unit.bytecode.constructs.case import Cases

CASES = Cases()


@CASES((2,))
def bodies(n: int) -> Any:
    x = "outer"

    class A:
        """Documented."""
        y = x
        x = "inner"
        z: int = n
        values = [i * 2 for i in range(n)]

        def get(self):
            return x, self.x, __class__

        if n > 1:
            def more(self): return n

        class Inner:
            w = n

    a = A()
    return a.get()[:2], a.get()[2] is A, A.y, A.x, A.__doc__, A.__qualname__, A.__module__, A.values, a.more(), A.Inner.w, A


@CASES()
def supers() -> Any:
    class A:
        name = "A"

        def __init__(self, x):
            self.x = x

        def f(self, *args):
            return ("A", args)

        @classmethod
        def c(cls):
            return cls.__name__

        @property
        def p(self):
            return "p of A"

    class B(A):
        name = "B"

        def __init__(self, x):
            super().__init__(x + 1)
            super(B, self).__init__(self.x * 2)

        def f(self, *args):
            inner = lambda: super(B, self).f(0)
            return super().f(*args), super(B, self).f(1), super().name, inner(), super().p

        @classmethod
        def c(cls):
            return super().c() + "!"

        def wrong(self):
            return super().missing

        def called(self):
            return super().missing(1)

    b = B(3)
    found = [b.x, b.f(1, 2), B.c()]
    for act in (b.wrong, b.called):
        try:
            act()
        except AttributeError as error:
            found.append(error)
    return found


@CASES()
def supers_wrong() -> Any:
    return super().x


@CASES(1)
def supers_wrong_with_argument(self: Any) -> Any:
    return super().x


class Base:
    def method(self) -> str:
        return f"base of {type(self).__name__}"

    @property
    def value(self) -> int:
        return 5


class Derived(Base):
    def method(self) -> Any:
        return "derived", super().method(), super().value

    def through_cell(self) -> Any:
        return [super(Derived, self).method() for _ in range(2)], (lambda: self.method())(), super().method()

    def rebound(self) -> Any:
        self = Derived()
        return super().method()

    def deleted(self) -> Any:
        del self
        return super().method()

    def missing(self) -> Any:
        return super().nothing

    def written(self) -> Any:
        super().value = 3

    def no_arguments() -> Any:  # type: ignore[misc]
        return super().method()


@CASES(*[(Derived.method, Derived()), (Derived.through_cell, Derived()), (Derived.rebound, Derived()),
         (Derived.deleted, Derived()), (Derived.missing, Derived()), (Derived.method, 3), (Derived.written, Derived()),
         (Derived.no_arguments,)])
def methods(method: Any, *args: Any) -> Any:
    return method(*args)


@CASES()
def descriptors() -> Any:
    class Told:
        def __set_name__(self, owner, name):
            print("named", name)
            self.name = name

        def __get__(self, one, kind):
            return ("got", self.name, one is None)

        def __set__(self, one, value):
            print("set", value)

        def __delete__(self, one):
            print("deleted")

    class A:
        told = Told()

        @property
        def p(self):
            return self._p

        @p.setter
        def p(self, value):
            self._p = value * 2

        @p.deleter
        def p(self):
            del self._p

        @staticmethod
        def s(x):
            return x

        @functools.cached_property
        def cached(self):
            print("once")
            return 1

    a = A()
    a.told = 3
    del a.told
    a.p = 4
    first = a.p
    a.p += 1
    second = a.p
    del a.p
    try:
        a.p
    except AttributeError as error:
        return a.told, A.told, first, second, error, a.s(1), A.s(2), a.cached, a.cached


class Dynamic:
    def __getattr__(self, name: str) -> Any:
        if name == "no" or name.startswith("__"):
            raise AttributeError("not this one")
        return lambda *args: (name, args)

    def __setattr__(self, name: str, value: Any) -> None:
        print("set", name, value)

    def __delattr__(self, name: str) -> None:
        print("delete", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


@CASES(Dynamic())
def dynamic(value: Any) -> Any:
    value.x = 3
    value.y: int = 4
    value.z += [1] if False else ()
    del value.x
    return value.method(1), value(1, k=2), value.no


@CASES(Dynamic())
def dynamic_plain(value: Any) -> Any:
    value.x = 3
    del value.x
    return value.method(1), value(1, k=2), hasattr(value, "no"), getattr(value, "no", 5)


@CASES()
def made_classes() -> Any:
    @dataclasses.dataclass(order=True, frozen=True)
    class D:
        a: int
        b: list = dataclasses.field(default_factory=list)

    class E(enum.Enum):
        ONE = 1
        TWO = enum.auto()

    class N(typing.NamedTuple):
        x: int
        y: str = "d"

    class I(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

    found = [repr(D(1)), D(1) < D(2), E.TWO.value, E["ONE"].name, N(1), N(1)._replace(y="z"), D.__module__, E.__module__]
    found.append(enum.Enum("F", "A B").__module__)
    for act in (lambda: I(), lambda: setattr(D(1), "a", 2), lambda: E(9), lambda: N()):
        try:
            act()
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


@CASES()
def metaclasses() -> Any:
    class M(type):
        @classmethod
        def __prepare__(mcls, name, bases, **kw):
            print("prepare", name, kw)
            return {}

        def __new__(mcls, name, bases, space, **kw):
            return super().__new__(mcls, name, bases, space)

        def __init__(cls, name, bases, space, **kw):
            print("made", name, sorted(k for k in space if not k.startswith("__")))

    class A(metaclass=M, flag=1):
        x = 1

    class B(A, **{"flag": 2}):
        def __init_subclass__(cls, **kw):
            print("subclass", kw)

    class C(B):
        pass

    class P:
        def __init_subclass__(cls, **kw):
            print("subclass", cls.__name__, kw)

    class Q(P, k=3): pass
    return type(C) is M, C.x


@CASES(*range(4))
def classes_failing(number: int) -> Any:
    if number == 0:
        class A(3): pass
    if number == 1:
        class B(bool): pass
    if number == 2:
        class C:
            x = undefined_here
    if number == 3:
        class D(object, object): pass


@CASES()
def operators() -> Any:
    class V:
        def __init__(self, x): self.x = x
        def __add__(self, o): return V(self.x + getattr(o, "x", o))
        def __radd__(self, o): return V(o - self.x)
        def __eq__(self, o): return self.x == o.x
        def __hash__(self): return 1
        def __getitem__(self, k): return k
        def __call__(self, *a): return a
        def __bool__(self): return self.x > 0
        def __len__(self): return 9
        def __iter__(self): yield from range(self.x)
        def __contains__(self, k): return k == self.x
        def __matmul__(self, o): return "matmul"
        def __enter__(self): return self
        def __exit__(self, *a): print("left"); return True
        def __index__(self): return self.x

    a, b = V(2), V(3)
    with a as c:
        raise ValueError
    return ((a + b).x, (1 + a).x, (a + 1).x, a == V(2), {a, V(2)} == {a}, a[1:2, ...], a(1), not a, len(a), [*b], 3 in b,
            a @ b, c is a, [0, 1, 2, 3][a], V(0) or "empty")
