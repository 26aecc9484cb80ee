"""Variables of comprehensions have names of their own where Python might take another for them."""
from __future__ import annotations

import ast
import itertools
from typing import Any

import pytest

from stillgraph.source.comprehensions import apart
from tests.unit.source.plain_operators import converted
from tests.unit.source.run_programs import outcome


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("[a for a in b]", "[a for a in b]"),
        ("[(a, c) for a in b for c in a], a, c", "([(a_0, c_1) for a_0 in b for c_1 in a_0], a, c)"),
        ("[a for a in b], (lambda a: 1)", "([a_0 for a_0 in b], lambda a: 1)"),
        ("sum(a for a in b), a", "(sum((a for a in b)), a)"),
        ("[(lambda: b)() for a in a]", "[(lambda: b)() for a in a]"),
        ("[(lambda: a)() for a in a]", "[(lambda: a_0)() for a_0 in a]"),
        ("{a: (lambda a, b=a: a) for a in b if a}", "{a_0: lambda a, b=a_0: a for a_0 in b if a_0}"),
        ("{a + b for a in c for b in f(lambda: a)}", "{a_0 + b for a_0 in c for b in f(lambda: a_0)}"),
        ("[[a for a in a] + (lambda: a)() for a in c]", "[[a_1 for a_1 in a_0] + (lambda: a_0)() for a_0 in c]"),
        ("[sum(a for b in c) for a in c]", "[sum((a_0 for b in c)) for a_0 in c]"),
        ("[sum(a for a in a) for a in c]", "[sum((a for a in a_0)) for a_0 in c]"),
        ("[(a := b, lambda: c) for c in a]", "[((a := b), lambda: c_0) for c_0 in a]"),
    ],
)
def test_names(written: str, made: str) -> None:
    tree = ast.parse(written, mode="eval").body
    numbers = itertools.count()
    assert ast.unparse(apart(tree, lambda name: f"{name}_{next(numbers)}")) == made
    assert ast.unparse(tree) == ast.unparse(ast.parse(written, mode="eval").body), "the tree itself stays"


def unbound(a: Any, b: Any, o: Any, items: Any) -> Any:
    while a < 5:
        if [a + b for a in range(2) for b in ((3 and b), 1)]:
            a = 7
        b = 3
        break
    return a, b


def outer_after_inner(a: Any, b: Any, o: Any, items: Any) -> Any:
    for _ in range(2):
        a = [(lambda: a)() for a in range(2) if b] * (b == a)
    return a, b


def written_further_in(a: Any, b: Any, o: Any, items: Any) -> Any:
    while a < 5:
        items[0] = [b + 1 for b in range(3)]
        if items:
            b = 9
        a = 7
    return a, b


@pytest.mark.parametrize("function", [unbound, outer_after_inner, written_further_in])
def test_rewritten_code_does_as_written(function: Any) -> None:
    made = converted(function).function
    for a, b in ((0, 1), (1, 0), (2, 5), (-1, 3)):
        assert outcome(made, a, b) == outcome(function, a, b)
