# ruff: noqa: PT018, RUF018 (the functions are as people write them)
"""The text of rewritten functions. `STILLGRAPH_UPDATE_GOLDEN=1` writes what it is now."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.source.plain_operators import converted

GOLDEN = Path(__file__).parents[2] / "golden" / "source"
pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="ast.unparse differs between versions")


def halve(x, limit):
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def early_exits(xs, limit: float = 1.0):
    """Returns, breaks and continues."""
    total = 0
    for i, x in enumerate(xs):
        if x is None:
            continue
        if x > limit and i not in (2, 3):
            return "large", x
        elif 0 < x - 1 <= 2:
            break
        total += x
    else:
        total = -total
    if total > 10:
        print(f"{total:.2f} of {limit!r}")
    return total


def protected(path, self):
    with open(path) as file, self.lock as self.held:
        try:
            if file.read():
                return self.value
            self.count += 1
        except OSError as error:
            raise ValueError(path) from error
        finally:
            file.close()
    del self.cache[path], self.other
    return None


def expressions(a, b, xs):
    assert a and (n := len(xs)) > 1, f"{a} is {n}"
    first = xs[0] if xs else b.get(a, *xs, key=xs[a:-1])
    pairs = {k: v for k, v in b.items() if not v}
    return first, pairs, [x * n for x in xs if x], sum(x for x in xs), lambda x=a: x or n


def matched(op, x):
    match op:
        case 0 | "zero":
            return x
        case ("scale", factor) if factor != 0:
            y = x * factor
        case {"kind": str(kind), **rest}:
            y = kind, rest
        case _:
            y = None
    return y


def windows(x, size):
    for start in range(0, len(x), size):
        part = x[start:start + size]
        if part and part[0] > 0:
            while part[-1] < 0:
                part = part[:-1]
            yield part


def make_visitor():
    total = 0

    class Visitor:
        def __init__(self, limit):
            super().__init__()
            self.__limit = limit

        def visit(self, value):
            nonlocal total
            if value > self.__limit:
                total = total + value
            return total

    def visit_all(values):
        global LAST
        visitor = Visitor(1)
        for LAST in values:
            visitor.visit(LAST)
        return total

    return visit_all


@pytest.mark.parametrize("function", [halve, early_exits, protected, expressions, matched, windows, make_visitor],
                         ids=lambda function: function.__name__)
def test_rewritten_text(function: Any) -> None:
    file = GOLDEN / f"{function.__name__}.py.txt"
    text = converted(function).code + "\n"
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
