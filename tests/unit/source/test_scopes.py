# ruff: noqa: C416
# The functions are user code, roundabout on purpose.
"""Globals, nonlocals and the names that a function sees do the same when rewritten."""

from __future__ import annotations

import os
import os.path as osp
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.source.plain_operators import converted
from tests.unit.source.same import check
from tests.unit.source.telling import Thing, manager

EVENTS: list[object] = []
COUNT = 0


def test_globals() -> None:
    def use_globals(n):
        global COUNT, EVENTS, thing, osp2, made, Made, path
        COUNT = n
        for COUNT in range(n):
            if COUNT == 3:
                COUNT += 10
                break
        else:
            (COUNT, EVENTS), thing = (1, [2]), 5
        import os.path as osp2
        if n:
            from os import path

            def made():
                return COUNT

            class Made:
                pass

            with manager("g") as thing:
                COUNT += n
            print((COUNT := COUNT + 1), made.__qualname__, Made.__qualname__)
            del thing
        return COUNT, EVENTS, "thing" in globals(), osp2 is osp, path is os.path

    check(use_globals, 0, 2, 5)


def make_counter(start: int) -> Any:
    count = start
    limit = 3

    def counter(step):
        nonlocal count
        if count + step > limit:
            count = 0
        else:
            count += step
        return count, limit

    return counter


def test_closures_are_kept() -> None:
    one, other = make_counter(0), make_counter(0)
    made = converted(one)
    assert made.written_cells == ("count",)
    assert [made.function(1) for _ in range(5)] == [other(1) for _ in range(5)]
    assert one.__closure__[0].cell_contents == other.__closure__[0].cell_contents
    again = converted(make_counter(2))
    assert again.function.__code__ is made.function.__code__
    assert again.function(1) == (3, 3)


def test_written_cells_at_any_depth() -> None:
    def outer():
        a = b = c = 0

        def middle(c=c):
            def inner():
                nonlocal a, c
                a = c = 1
                return b

            if c:
                nonlocal b
                b = 2
            return inner

        return middle, (a, b, c)

    assert converted(outer()[0]).written_cells == ("a", "b")


def test_names_of_operators_are_left_to_the_user() -> None:
    def names(call, item, if_=None, Return=3):
        while_ = BREAK = 0
        for item in call:
            if item:
                while_ += item
                if while_ > Return:
                    return "early", item
            then_1 = loop_body_1 = value_1 = item
        exit_1 = [result_of for result_of in call]
        return call[0], item, while_, if_, Return, then_1, loop_body_1, value_1, exit_1, BREAK, is_none(call)

    check(names, ([1, 2],), ([1, 2, 3], 4))


def is_none(value: object) -> str:
    return f"mine {value}"


def test_locals_are_the_users_own() -> None:
    def own(a, b=2):
        c = a + b
        if a:
            c += 1
        return locals(), sorted(vars()), eval("a + b"), "{a} {c}".format(**locals())

    check(own, 0, 1)


def test_the_functions_of_a_frame() -> None:
    def frame(x):
        if x:
            return globals() is is_none.__globals__, "is_none" in globals()
        return dir(x) == dir(0), vars(Thing(y=1)), eval("1 + 1", {}), hasattr(x, "real")

    check(frame, 0, 1)


@pytest.fixture(autouse=True)
def _globals_are_restored() -> Iterator[None]:
    before = dict(globals())
    yield
    globals().update(before)
