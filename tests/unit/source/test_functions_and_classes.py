# ruff: noqa: B008, E501, E702, E731, RUF012, UP008
# The functions are user code, roundabout on purpose.
"""Functions, generators and classes do the same when rewritten."""

from __future__ import annotations

import functools

import pytest

from tests.unit.source.plain_operators import rewritten
from tests.unit.source.same import check
from tests.unit.source.telling import manager, note


class Base:
    def __init__(self, x):
        self.__x = x
        self._Base__y = 2

    def get(self, deep=False):
        if deep:
            return [self.__x, self.__y, (lambda: self.__x)()]
        return self.__x

    @classmethod
    def make(cls, x):
        return cls(x)


class __Derived(Base):
    def __init__(self, x, __extra=1):
        if x:
            super().__init__(x)
        else:
            super().__init__(-1)
        self.__x = __extra
        self.__x += 1
        local = {"__name": 1}
        __local = 5
        if x:
            __local += 1
        self.values = [self.__x, __local, self.__class__ is __class__, local]

    def get(self, deep=False):
        def nested(self):
            if deep:
                return super().get(deep)
            return super().get(), __class__.__name__

        return nested(self), self.__x

    @classmethod
    def make(cls, x):
        if x > 1:
            return super().make(x)
        return super(__Derived, cls).make(0)


def test_super_and_private_names() -> None:
    def use(x, deep):
        made = __Derived_.make(x)
        return made.get(deep), made.values, sorted(vars(made))

    check(use, (0, True), (1, False), (2, True))


__Derived_ = __Derived


def test_classes_in_functions() -> None:
    def classes(x):
        base = Base
        if x:
            class Inner(base):
                """Documentation."""

                values = [v for v in range(3) if v]
                size = len(values) if x else 0
                key = staticmethod(lambda v: v and -v)

                def get(self, deep=x):
                    if deep:
                        return super().get(), self.__private(), self.size
                    return "shallow"

                def __private(self):
                    return type(self).__name__ if x == 1 else __class__.__qualname__

                @property
                def twice(self):
                    return [self.get() for _ in range(2)]
        else:
            Inner = base
        made = Inner(3)
        return made.get(), getattr(made, "twice", None), Inner.__qualname__, Inner.get.__qualname__, Inner.__doc__

    check(classes, 0, 1, 2)


def test_decorators_and_defaults() -> None:
    def decorated(x):
        @functools.lru_cache(maxsize=note(x + 1))
        @functools.wraps(note)
        def inner(a, /, b=note(x and "b"), *, c=note("c")):
            """Inner."""
            if a:
                return a, b, c
            return "no"

        return inner(0), inner(1), inner(1, c=3), inner.__name__, inner.__wrapped__ is note

    check(decorated, 0, 1)


def test_everything_about_a_function_is_kept() -> None:
    def function(a: int, /, b: str = "b", *args: int, c: float = 1.5, **kwargs: object) -> dict:
        """What it does."""
        return {"a": a, "b": b, "args": args, "c": c, "kwargs": kwargs}

    function.tag = 1
    made = rewritten(function)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__defaults__",
                 "__kwdefaults__", "__dict__"):
        assert getattr(made, name) == getattr(function, name), name
    assert made.__globals__ is function.__globals__
    assert made(1, 2, 3, c=4, d=5) == function(1, 2, 3, c=4, d=5)
    assert made.__code__.co_qualname == function.__code__.co_qualname
    with pytest.raises(TypeError, match=r"function\(\) missing 1 required positional argument: 'a'"):
        made()


def test_lambdas() -> None:
    same_line = [lambda x: x and 1, lambda x: x or 2, lambda x: (lambda x: x and 3)(x)]; pair = lambda a: lambda a: a or "in"
    for function in (*same_line, pair(0)):
        check(function, 0, 5)
    check(lambda x=3, *a, k=2, **kw: (x, a, k, kw) if x else None, 0, 1)
    assert rewritten(lambda: 1).__name__ == "<lambda>"


def test_generators() -> None:
    def generator(n):
        total = 0
        for i in range(n):
            if i % 2:
                got = yield i
                total += 1 if got is None else got
                continue
            while total < i:
                total += 1
                if total == 4:
                    break
            if i == 6:
                return "six"
            with manager(str(i)):
                if total > 2:
                    yield from (total, i)
        else:
            yield "else"
        if total:
            total = yield (total and (yield "inner"))
        try:
            yield [x for x in range(n) if x]
        finally:
            if total:
                note("finally")
        if n > 2:
            return "end"

    def collect(n):
        made, got = generator(n), []
        try:
            while True:
                got.append(next(made))
        except StopIteration as stop:
            return got, stop.value

    check(collect, 0, 1, 4, 7)
