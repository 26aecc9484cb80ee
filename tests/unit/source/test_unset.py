# ruff: noqa: B018, F821, F841 (the functions are about variables that may have no value)
"""Which reads of variables ask whether there is a value."""
from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.unit.source.plain_operators import converted


def arms(a):
    if a:
        x = 1
    else:
        x = y = 2
    return x, y


def loops(a):
    for i in a:
        x = i
    else:
        y = 1
    while True:
        z = 1
        if a:
            break
    return i, x, y, z


def raising(a):
    if a:
        x = 1
    else:
        raise ValueError
    try:
        y = 1
    except ValueError as e:
        z = 1
    finally:
        w = 1
        y
    return x, y, z, w, e


def deleting(a):
    x = y = z = 1
    if a:
        del x
    x = x + y
    del y
    return x, y


def nested(a):
    if a:
        x = 1
    y = 1

    def inner():
        return x, y, inner

    return [x for i in a], lambda: x, y


def contexts(a):
    with a as b:
        x = b
    return x


def augmented(a):
    if a:
        x = y = 1
    x += a
    x[y] += 1
    return x


def straight(a):
    x = y
    y = x
    return y


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (arms, ["y"]),
        (loops, ["i", "x"]),
        (raising, ["y", "y", "z", "e"]),
        (deleting, ["x", "y"]),
        (nested, ["x", "x", "x"]),
        (contexts, ["x"]),
        (augmented, ["x", "y", "y"]),
        (straight, []),
    ],
)
def test_reads_that_ask(function: Any, expected: list[str]) -> None:
    asked = [
        node.args[1].value
        for node in ast.walk(ast.parse(converted(function).code))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("loaded", "own")
    ]
    assert sorted(asked) == sorted(expected)
