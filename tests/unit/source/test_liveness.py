# ruff: noqa: F821, F841 (the functions are about variables that are not needed)
"""Which variables the operators of branches and loops are told to keep."""
from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from tests.unit.source.plain_operators import converted


def told(function: Any) -> dict[str, tuple[set[str], set[str]]]:
    """The operators of a rewritten function, in order of appearance, with what they keep and drop."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for node in ast.walk(ast.parse(converted(function).code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("if_", "while_", "for_", "continue_"):
            lists = {each.arg: set(ast.literal_eval(each.value)) for each in node.keywords if each.arg != "rest"}
            block = next(re.sub(r"\W", "", ast.unparse(arg)) for arg in node.args[1:])
            found[block] = lists.get("keeps", set()), lists.get("drops", set())
    return found


def branch(x):
    if x:
        a = b = c = d = 1
        d = 2
    else:
        a = 2
    b = 3
    print(a)
    del c


def loop(x):
    for i in range(x):
        t = i * 2
        x += t
        u = t
        if x > 10:
            v = x
            break
    return x, u


def carried(x):
    while x > 0:
        if x > 3:
            y = last
        last = x
        x -= 1
    return


def seen_by_closures(x):
    def read():
        return a

    for i in (1, 2):
        a = i
        b = i
        later = (i for _ in range(2))
    return read


def tried(x):
    a = b = 0
    try:
        if x:
            a = 1
            b = 1
            c = 1
        print(c)
        a = b = 2
    except ValueError:
        print(a)
    return b


def leaves(x):
    for i in (1, 2):
        if x == i:
            a = 1
            b = 1
            break
        a = 2
    else:
        a = 3
    return a


def finally_reads(x):
    a = 1
    try:
        if x:
            a = 2
            return 1
    finally:
        print(a)
    return 3


def checked(x):
    while (change := x - 1) > 0:
        x = change
    return change


def immediate(x):
    for i in range(2):
        k = i
        xs = [k for _ in range(i)]
    return xs


def redefined(x):
    if x:
        y = 1
    y = 2
    return y


@pytest.mark.parametrize(("function", "expected"), [
    (branch, {"then_1": ({"a", "c"}, {"b", "d"})}),
    (loop, {"loop_body_1": ({"x", "u"}, {"i", "t", "v"}), "then_1": (set(), {"v"})}),
    (carried, {"loop_body_1": ({"x", "last"}, {"y"}), "then_1": (set(), {"y"})}),
    (seen_by_closures, {"loop_body_1": ({"a", "i"}, {"b", "later"})}),
    (tried, {"then_1": ({"a", "b", "c"}, set())}),
    (leaves, {"loop_body_1": ({"a"}, {"i", "b"}), "then_1": ({"a"}, {"b"})}),
    (finally_reads, {"then_1": ({"a"}, set()), "rest_1": (set(), set())}),
    (checked, {"loop_body_1": ({"x", "change"}, set())}),
    (immediate, {"loop_body_1": ({"xs"}, {"i", "k"})}),
    (redefined, {"then_1": (set(), {"y"})}),
])
def test_kept_and_dropped(function: Any, expected: dict[str, tuple[set[str], set[str]]]) -> None:
    assert told(function) == expected
