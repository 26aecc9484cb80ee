# ruff: noqa: B018, F841 (the functions are about variables that may have no value)
"""Functions that read a variable which the path taken did not assign; see `test_unset`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg


def foo(t):
    print("in foo")
    return t + 1


class Box:
    pass


def plain(x):
    if x.sum() > 0:
        t = x * 2
    y = t
    print("behind")
    return x


def expr(x):
    if x.sum() > 0:
        t = x * 2
    t
    print("behind")
    return x


def append(x):
    lst = []
    if x.sum() > 0:
        t = x * 2
    lst.append(t)
    print("behind")
    return lst


def caught(x):
    if x.sum() > 0:
        t = x * 2
    try:
        return t
    except UnboundLocalError as e:
        print("caught", e)
        return x - 1


def caught2(x):
    try:
        if x.sum() > 0:
            t = x * 2
        y = t
        print("behind")
    except UnboundLocalError:
        y = x - 1
    return y


def called(x):
    if x.sum() > 0:
        t = x * 2
    return foo(t)


def number(x):
    n = 1
    if x.sum() > 0:
        t = 3
    y = t
    print("behind")
    return x * y


def deleted(x):
    t = x * 2
    if x.sum() < 0:
        del t
    y = t
    print("behind")
    return x


def closure(x):
    if x.sum() > 0:
        t = x * 2
    def g():
        print("in g")
        y = t
        print("behind")
        return 1
    return g()


def loop(x):
    for v in x:
        if v > 0:
            t = v
    print("before")
    y = t
    print("behind")
    return x


def loop2(x):
    for v in range(3):
        if x[v] > 0:
            t = x[v]
        else:
            print("no")
        y = t
        print("behind")
    return y


def augmented(x):
    if x.sum() > 0:
        t = x * 2
    t += 1
    print("behind")
    return t


def constant(x):
    if x.sum() > 0:
        t = "text"
    y = t
    print("behind")
    return y


def pair(x):
    if x.sum() > 0:
        t = (x, 1)
    y = t
    print("behind")
    return y[0]


def delagain(x):
    if x.sum() > 0:
        t = x * 2
    del t
    print("behind")
    return x


def obj(x):
    if x.sum() > 0:
        t = [x]
    y = t
    print("behind")
    y.append(x * 2)
    return y


def none(x):
    if x.sum() > 0:
        t = None
    y = t
    print("behind")
    return y


def isnone(x):
    if x.sum() > 0:
        t = x
    print(t is None)
    return x


def arm(x):
    if x.sum() > 0:
        t = x
    if x.mean() < 5:
        y = t
        print("in")
    else:
        y = x
    print("behind")
    return y


def whileloop(x):
    while x.sum() > 1:
        x = x / 2
        t = x
    y = t
    print("behind")
    return x


def empty(x):
    if x.sum() > 0:
        t = []
    y = t
    print("behind")
    y.append(x)
    return y


def emptyalias(x):
    if x.sum() > 0:
        t = u = []
    print("before")
    y = u
    t.append(x)
    return y, t is u


def aliases(x):
    if x.sum() > 0:
        t = u = [x]
    t.append(x + 1)
    return u, t is u


def instance(x):
    if x.sum() > 0:
        t = Box()
        t.v = x
    y = t
    print("behind")
    return y.v + 1


def dictionary(x):
    if x.sum() > 0:
        t = {"a": 1}
    y = t
    print("behind")
    return y["a"] * x


def function(x):
    if x.sum() > 0:
        def t(v):
            return v + 1

    else:
        print("no")
    print("before")
    r = t(x)
    return r


def elif_(x):
    if x.sum() > 10:
        t = "a"
    elif x.sum() > 0:
        t = "b"
    y = t
    print("behind")
    return y


def text(x):
    if x.sum() > 0:
        t = x
    print(f"{t}")
    return 1


def attr(x):
    if x.sum() > 0:
        t = Box()
    t.a = x * 2
    print("behind")
    return t.a


def setitem(x):
    if x.sum() > 0:
        t = x * 2
    t[0] = foo(x)[0]
    print("behind")
    return t


def setitem2(x):
    if x.sum() > 0:
        t = x * 2
    t[0] += foo(x)[0]
    print("behind")
    return t


def comp(x):
    if x.sum() > 0:
        t = x
    r = [t + i for i in range(2)]
    print("behind")
    return r


def comp2(x):
    if x.sum() > 0:
        t = x
    r = [(t, print(i)) for i in range(2)]
    print("behind")
    return r


def lam(x):
    if x.sum() > 0:
        t = x
    return (lambda: (print("in"), t))()[1]


def tern(x):
    if x.sum() > 0:
        t = x
    y = t if x.sum() < 5 else x
    print("behind")
    return y


def try_else(x):
    try:
        if x.sum() > 0:
            t = x
        t
    except NameError as error:
        print("none", type(error), error.name)
    else:
        print("else")
    finally:
        print("finally")
    return x


def while_tuple(x):
    while x.sum() > 1:
        x = x / 2
        t = (x, "a")
    y = t
    print("behind")
    return y


def while_num(x):
    n = 0
    while x.sum() > 1:
        x = x / 2
        n += 1
        t = n
    y = t
    print("behind")
    return y


def gen(x):
    if x.sum() > 0:
        t = x
    def g():
        yield x
        print("in")
        yield t
    return list(g())


def mutate(x):
    if x.sum() > 0:
        t = x * 2
    t.add_(1)
    if x.mean() < 5:
        t.add_(1)
    u = t
    u.mul_(2)
    return t, u is t


def same_cond(x):
    c = x.sum() > 0
    if c:
        t = [x]
    if c:
        t.append(x + 1)
        return t
    return x


def nested_del(x):
    t = x
    def f():
        nonlocal t
        del t
    if x.sum() < 0:
        f()
    print("before")
    y = t
    print("behind")
    return y


def loopdel(x):
    t = x
    for i in range(2):
        y = t
        print(i)
        if x[i] < 0:
            del t
    print("end")
    return y


def swallowed(x):
    with contextlib.suppress(NameError):
        if x.sum() > 0:
            t = x
        t
        print("behind")
    return x


def matched(x):
    if x.sum() > 0:
        t = 1
    match t:
        case 1:
            print("one")
        case _:
            print("other")
    return x


def left_by_a_loop_over_entries(x):
    found = {}
    if x.sum() > 1:
        found["a"] = 1
    for key in found:
        name = key
    return name


def made_by_an_inner_loop(x):
    i = 0
    while x.sum() > i:
        row = []
        while x.sum() > i + len(row):
            row.append(len(row))
        i = i + 1
    return row


def unset_in_a_block(x):
    while x.sum() < 2:
        x = x + 1
        try:
            x = x + best
            print("not the first")
        except UnboundLocalError:
            print("none yet")
        except NameError:
            print("another function's")
        best = 1
    return x


def deleted_in_a_block(x):
    try:
        if x[0] > 0:
            del t
    except UnboundLocalError:
        return "local"
    except NameError:
        return "free"
    t = 1
    return x


def augmented_in_a_block(x):
    if x[0] > 0:
        t += 1  # noqa: F821
    else:
        t = x
    return t


def unset_in_an_arm_of_an_expression(x):
    y = x if x.sum() > 0 else t  # noqa: F821
    t = 1
    return y


def unset_in_a_function_inside(x):
    def inside():
        return t if x.sum() > 0 else x

    y = inside()
    t = 1
    return y


def handed_out_in_one_arm(x):
    if x.sum() > 0:
        t = [x]
    if x[0] > 0.5:
        return t
    return x


def joined_with_another(x):
    if x.sum() > 0:
        t = {"a": x}
    u = t if x[0] > 0.5 else {"a": x * 2}
    return u


def or_nothing(x):
    c = x.sum() > 0
    if c:
        t = {1}
    return t if c else None


def in_an_entry(x):
    if x.sum() > 0:
        t = (x, [x.shape])
    d = {}
    if x[0] > 0.5:
        d["t"] = t
    return d


def changed_by_another_name(x):
    if x.sum() > 0:
        t = [x]
    u = t if x[0] > 0.5 else None
    if u is not None:
        u.append(x)
        return t
    return x


def left_by_what_raises(x):
    if x.sum() > 0:
        t = [x]
    if x[0] > 0.5:
        u = t
    else:
        raise NameError("no")
    u[0] = x * 2
    return t


def of_an_element(x):
    """The message names the variable, and not the element."""
    if x.sum() > 0:
        t = [x, (x, x * 2)]
    return t[1][0] + 1


FUNCTIONS = [
    of_an_element,
    handed_out_in_one_arm,
    joined_with_another,
    or_nothing,
    in_an_entry,
    changed_by_another_name,
    left_by_what_raises,
    unset_in_a_block,
    deleted_in_a_block,
    augmented_in_a_block,
    unset_in_an_arm_of_an_expression,
    unset_in_a_function_inside,
    left_by_a_loop_over_entries,
    made_by_an_inner_loop,
    plain,
    expr,
    append,
    caught,
    caught2,
    called,
    number,
    deleted,
    closure,
    loop,
    loop2,
    augmented,
    constant,
    pair,
    delagain,
    obj,
    none,
    isnone,
    arm,
    whileloop,
    empty,
    emptyalias,
    aliases,
    instance,
    dictionary,
    function,
    elif_,
    text,
    attr,
    setitem,
    setitem2,
    comp,
    comp2,
    lam,
    tern,
    try_else,
    while_tuple,
    while_num,
    gen,
    mutate,
    same_cond,
    nested_del,
    loopdel,
    swallowed,
    matched,
]
ONES, LESS = torch.ones(3), -torch.ones(3)
ONE, ZEROS = torch.tensor([1.0, -3.0, 0.0]), torch.zeros(3)  # the variable is unset in both; one arm reads it


def outcome(function: Callable[..., Any], x: torch.Tensor, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a call gives or raises, and what it prints."""
    try:
        result = repr(function(x.clone()))
    except NameError as error:
        result = type(error), str(error)
    return result, capsys.readouterr().out


def static(function: Callable[..., Any], way: str) -> Callable[..., Any]:
    if way == "segments":
        return sg.to_static(function, full_graph=False, strict=True, backend="eager")
    return sg.to_static(function, backend="eager")
