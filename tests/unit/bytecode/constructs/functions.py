"""Functions: calls, arguments, variables and their scopes, and what looks at them."""
# ruff: noqa  (every way to write Python is what this file is for)

from __future__ import annotations

import builtins
import functools
import operator
import sys
from typing import Any

from tests.unit.bytecode.constructs.case import Cases, caller

CASES = Cases()
GLOBAL = "global"


def takes(a, b=2, /, c=3, *rest, d, e=5, **more):
    return a, b, c, rest, d, e, more


def plain(a, b):
    return a, b


@CASES()
def calls() -> Any:
    args, kwargs = (1, 2), {"d": 4, "z": 9}
    return (
        takes(1, d=0), takes(1, 2, 3, 4, 5, d=6, f=7), takes(*args, d=1), takes(*args, *args, **kwargs),
        takes(0, *args, 7, e=8, **kwargs), takes(*"ab", **{"d": 1}, **{"c": 2}), takes(1, c=5, **kwargs), print(),
        "a-b".split("-"), "a".join(["x", "y"]), max(1, 2, key=lambda v: -v), [3, 1].sort(), (lambda *a, k=1: (a, k))(4, k=2),
        functools.partial(plain, 1)(2), dict(a=1, **{"b": 2}), type("T", (), {"x": 1}).x, plain(b=1, a=2), int("7", base=8),
    )


@CASES(*range(22))
def calls_failing(number: int) -> Any:
    if number == 0: plain(1)
    if number == 1: plain(1, 2, 3)
    if number == 2: plain(1, 2, a=3)
    if number == 3: plain(1, z=3)
    if number == 4: takes(d=1)
    if number == 5: takes(1)
    if number == 6: takes(1, a=1, b=2, d=3)
    if number == 7: plain(*5)
    if number == 8: plain(1, *5)
    if number == 9: plain(**5)
    if number == 10: plain(**{"a": 1}, **{"a": 2})
    if number == 11: plain(a=1, **{"a": 2})
    if number == 12: plain(**{1: 2})
    if number == 13: [3][0](4)
    if number == 14: len()
    if number == 15: len(1, 2)
    if number == 16: "a".split(1, 2, 3)
    if number == 17: print(1, **{"sep": ""}, **{"sep": ""})
    if number == 18: dict(**5)
    if number == 19: functools.partial(plain)(*5)
    if number == 20: [].append(*None)
    if number == 21: takes(*[1], **[2])


@CASES((1,), (1, 2), (1, 2, 3, 4), ())
def binds(a: Any, b: Any = [], /, c: Any = 3, *rest: Any, d: Any = 4, **more: Any) -> Any:
    return a, c, rest, d, more, locals()


@CASES()
def order() -> Any:
    def told(value):
        print(value if not callable(value) else "function")
        return value

    def target(*args, **kwargs):
        return args, kwargs

    return told(target)(told(1), *told([2]), told(3), k=told(4), **told({"z": 5}), y=told(6)), {told(1): told(2)}, [
        told(3), told(4)][told(0)], told(1) < told(2) < told(1) < told(9)


@CASES()
def closures() -> Any:
    count = 0
    names = []

    def add(n=1):
        nonlocal count
        count += n
        names.append(count)
        return lambda: count * n

    def later():
        return after

    f, g = add(), add(5)
    after = "set"
    return count, names, f(), g(), later(), add.__closure__ is not None, add.__code__.co_freevars


@CASES()
def free_unbound() -> Any:
    def inner():
        return later

    try:
        inner()
    except NameError as error:
        print(error, error.name)
    later = 1
    del later
    return inner()


@CASES()
def free_deleted() -> Any:
    x = 1

    def inner():
        nonlocal x
        del x
        del x

    inner()


@CASES(True, False)
def local_unbound(given: bool) -> Any:
    if given:
        x = 1
    return x


@CASES(True, False)
def cell_unbound(given: bool) -> Any:
    if given:
        x = 1
    lambda: x
    x += 1
    return x


@CASES()
def name_unknown() -> Any:
    return unknown_name


@CASES()
def name_unknown_error() -> Any:
    try:
        unknown_name
    except NameError as error:
        return error.name


@CASES()
def globals_written() -> Any:
    global GLOBAL, NEW_GLOBAL
    before = GLOBAL
    GLOBAL = "changed"
    NEW_GLOBAL = 1
    found = (before, GLOBAL, NEW_GLOBAL, globals()["NEW_GLOBAL"], "NEW_GLOBAL" in globals())
    GLOBAL = before
    del NEW_GLOBAL
    try:
        del NEW_GLOBAL
    except NameError as error:
        return found, error, error.name


@CASES((1,), ("x",))
def namespaces(a: Any, *args: Any, **kwargs: Any) -> Any:
    b = 2
    inner = lambda: b
    first = dict(locals())
    del b
    second = sorted(vars()), dir(), sorted(locals())
    c = [locals().get("a") for _ in range(1)]
    return first["a"], sorted(first), second, c, locals() is locals(), globals() is sys.modules[__name__].__dict__


@CASES((3,))
def evaluating(a: int) -> Any:
    b = 4
    found = [eval("a + b"), eval("a", {"a": 7}), eval("a + z", {"z": 1}, {"a": 5}), eval("GLOBAL"), eval("a", None, {"a": 9})]
    exec("print(a, b)")
    exec("new = a * 2")
    exec("made = 1", None, locals())
    names = {}
    exec("x = 1\ndef f(): return x", names)
    found += [sorted(each for each in locals() if each in ("new", "made")), names["f"](), b]
    exec("b = 100")
    return found, b, locals().get("new"), eval("__name__")


@CASES()
def evaluating_failing() -> Any:
    return eval("1 +")


@CASES()
def evaluating_unknown() -> Any:
    return eval("nowhere")


@CASES()
def shadowing() -> Any:
    def locals():
        return "mine"

    eval = lambda text: text
    return locals(), eval("1 + 1"), builtins.globals()["GLOBAL"]


@CASES()
def imports() -> Any:
    import os.path
    import collections.abc as abc
    import xml.dom.minidom
    from os import path as p, sep
    from os.path import join as j
    import json, math as m
    return os.path is p, abc.__name__, xml.__name__, j("a", "b") == f"a{sep}b", json.loads("[1]"), m.pi


@CASES(0, 1, 2, 3, 4)
def imports_failing(number: int) -> Any:
    if number == 0:
        import no_such_module
    if number == 1:
        from os import no_such_name
    if number == 2:
        import os.no_such_module
    if number == 3:
        from sys import no_such_name
    if number == 4:
        from . import nothing_there


@CASES((0,), (10,))
def recursion(n: int) -> Any:
    def inner(k):
        return k if k < 2 else inner(k - 1) + inner(k - 2)

    return inner(n)


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@CASES((9,))
def recursion_global(n: int) -> Any:
    return fib(n)


@CASES()
def made() -> Any:
    x = 1

    def documented(a: int, b: "str" = "d", *, c: float = 1.5, **k: Any) -> list[int]:
        """What it does."""
        return x

    def bare(): return None
    y = lambda a, /, b=x: a
    return (
        documented, documented.__doc__, documented.__name__, documented.__qualname__, documented.__module__, bare.__doc__,
        documented.__annotations__, documented.__defaults__, documented.__kwdefaults__, y, y.__doc__, y.__name__, bare,
    )


def decorated(how):
    def outer(function):
        @functools.wraps(function)
        def inner(*args):
            print(how, args)
            return function(*args)
        return inner
    return outer


@CASES()
def decorators() -> Any:
    @decorated("first")
    @decorated("second")
    def act(a):
        return a
    return act(1), act.__name__


@CASES()
def positions() -> Any:
    return (
        operator.add(
            1,
            plain(
                2,
            ),
        )
    )


@CASES()
def called_from() -> Any:
    first = caller()
    return first, caller(), [
        caller(),
        caller(),
    ]


@CASES((3,))
def lambdas(n: int) -> Any:
    return (lambda: (lambda x: x + n))()(2), (lambda *, k=n: k)(), (lambda a, b=(lambda: n)(): a * b)(4)
