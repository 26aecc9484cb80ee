"""Texts of which paths leave one, inside lists, tuples, dicts and sets: compared, looked for, sorted and shown."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

CALLS = (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]), torch.tensor([0.1, 0.1]))


def names(x: Tensor) -> tuple[str, str]:
    a = "x" if x.sum() > 0 else "y"
    b = "y" if x[0] > x[1] else "z"
    return a, b


def equal(x: Tensor) -> Any:
    a, b = names(x)
    n = int(x.abs().sum())
    return (a, b) == ("x", "z"), [a, b] != ["y", "z"], (a, n) == ("x", 3), {"k": a, "n": n} == {"k": "x", "n": 3}


def equal_of_other_kinds(x: Tensor) -> Any:
    a, _ = names(x)
    return deque([a]) == deque(["x"]), OrderedDict(k=a) == OrderedDict(k="x"), [[a]] == [["y"]], (a, x) == ("x", x)


def decides_a_branch(x: Tensor) -> Any:
    if names(x) == ("x", "z"):
        return x * 2
    return x * 3 if [*names(x)] == ["y", "z"] else x


def ordered(x: Tensor) -> Any:
    a, b = names(x)
    n = int(x.abs().sum())
    extremes = min(a, b), max([a, b, "w"]), max((a, n), ("x", 2))
    return (a, b) < ("x", "y"), (a, n) <= ("x", 2), (n, a) > (3, "x"), extremes


def keys_on_some_paths(x: Tensor) -> Any:
    a, b = names(x)
    in_order = {a, b} >= {"y"}, {a} < {"x", "z"}, {a}.issubset({"x", "q"})
    return {a} == {"x"}, in_order, {a: b} == {"x": "z"}, [{a}] == [{"y"}]


def sought(x: Tensor) -> Any:
    a, b = names(x)
    rows = [(a, 1), ("x", 2)]
    return ("x", 1) in rows, rows.count(("y", 1)), [a, b].count("y"), [a, "q", "y"].index("y"), a in ["x", "q"]


def not_found(x: Tensor) -> Any:
    a, _ = names(x)
    try:
        return [a, "b"].index("x")
    except ValueError as error:
        return str(error)


def removed(x: Tensor) -> Any:
    a, b = names(x)
    left = [a, b, "y"]
    left.remove("y")
    return left


def in_order(x: Tensor) -> Any:
    a, b = names(x)
    n = int(x.abs().sum())
    return sorted([a, "xx", b]), sorted([(a, n), ("x", 2)]), sorted([a, b], reverse=True), sorted([b, a], key=len)


def shown(x: Tensor) -> Any:
    a, b = names(x)
    n = int(x.abs().sum())
    formatted = "%s %s" % ([b], n), "{} {}".format((a,), n)  # noqa: UP031, UP032  # what is asked for
    return f"{n} {[a]}", str((a, n)), repr({"k": a, "n": n}), formatted, str([a])


def of_a_loop(x: Tensor) -> Any:
    a = "x"
    while x.sum() < 5:
        x = x + 1
        a = "y" if x[0] > 2 else "z"
    return (a, x) == ("y", x), [a, "z"].index("z"), sorted([a, "y"]), {a} == {"z"}


FUNCTIONS = [
    *(equal, equal_of_other_kinds, decides_a_branch, ordered, keys_on_some_paths, sought, not_found, removed),
    *(in_order, shown, of_a_loop),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_without_a_full_graph(function: Callable[[Tensor], Any]) -> None:
    static = sg.symbolic_trace(function)
    for x in CALLS:
        assert repr(static(x)) == repr(function(x))
