"""Comprehensions and generator expressions that assign by ``:=``, where only the run decides what they do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.source import assigning

LAST = 0


def in_a_filter(x):
    return [y for v in x.tolist() if (y := v * 2) > 1]


def of_tensors(x):
    kept = [y for v in x.unbind(0) if (y := v.sin()) > 0]
    return kept, y


def a_running_sum(x):
    total = 0
    return [total := total + v for v in x.tolist()], total


def of_a_dict(x):
    return {k: y for k, v in enumerate(x.unbind(0)) if (y := _perhaps(v)) is not None}


def _perhaps(v):
    return v * 2 if v > 1 else None


def of_a_set(x):
    return sorted({y for v in x.tolist() if (y := int(v)) > 0}), y


def in_one_another(x):
    total = 0
    return [[total := total + v for v in row] for row in x.reshape(2, -1).tolist()], total


def over_two_loops(x):
    return [(a, b) for a in x.tolist() if (b := a * 2) > 1 for c in (1, 2) if (d := c + b) > 3], b, d


def in_the_test_of_a_loop(x):
    while len([last := v for v in x.tolist() if v > 0]) > 1:
        x = x - 1
    return x, last


def in_an_arm(x):
    if x.sum() > 1:
        found = [y * 2 for v in x.tolist() if (y := v) > 0]
    else:
        found = [y := -1]
    return found, y


def of_a_global(x):
    global LAST
    return [LAST := v for v in x.tolist()], LAST


def beside_a_variable_of_its_name(x):
    v = 5
    return [y for v in x.tolist() if (y := v) > 0], v


def until_any(x):
    y = 0.0
    return any((y := v) > 1 for v in x.tolist()), y


def while_all(x):
    y = 0.0
    return all((y := v * 2) > 0 for v in x), y


def the_first(x):
    n = 0
    return next((v for v in x.tolist() if (n := n + 1) > 1 and v > 0), None), n


def summed(x):
    t = 0
    return sum((t := t + v) for v in x.tolist() if v > 0), t


def the_largest(x):
    y = 0
    return max((y := v * v) for v in x.tolist()), y


def filled(x):
    t = 0.0
    values = list((t := t + v) for v in x.tolist() if v > 0)  # noqa: C400 - it is what is tested
    others = tuple(t for v in x.tolist() if (t := t + v) > 1)
    return values, others, t, dict((k, t) for k, v in enumerate(x.tolist()) if (t := v * 2) > 1)  # noqa: C402


def set_where_it_is_found(x):
    if any((hit := v) > 1 for v in x.tolist()):
        return hit
    return x


def as_often_as_the_run_says(x):
    t = 0
    return any((t := t + k) > 3 for k in range(int(x[0]) * 2)), t


def of_generators_in_one_another(x):
    t = 0
    return any(any((t := t + v) > 2 for v in row) for row in x.reshape(2, -1).tolist()), t


def drawn_later(x):
    t = 0
    values = ((t := t + v) for v in x.tolist() if v > 0)
    before = t
    for u in values:
        before = before + u * t
        if before > 4:
            break
    return before, t


def in_the_test_of_a_loop_by_any(x):
    i = 0
    while any((last := v) > i for v in x.tolist()):
        i += 1
    return i, last


def of_a_global_by_any(x):
    global LAST
    return any((LAST := v) > 1 for v in x.tolist()), LAST


GENERATORS = [
    *(until_any, while_all, the_first, summed, the_largest, filled, set_where_it_is_found, as_often_as_the_run_says),
    *(of_generators_in_one_another, drawn_later, in_the_test_of_a_loop_by_any, of_a_global_by_any),
]
FUNCTIONS = [
    *GENERATORS,
    *(in_a_filter, of_tensors, a_running_sum, of_a_dict, of_a_set, in_one_another, over_two_loops),
    *(in_the_test_of_a_loop, in_an_arm, of_a_global, beside_a_variable_of_its_name),
]


def _outcome(function: Callable[..., Any], x: torch.Tensor) -> Any:
    global LAST
    LAST = 0
    try:
        return repr(function(x)), LAST
    except UnboundLocalError as error:
        return str(error), LAST


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_as_in_eager(function: Callable[..., Any], full_graph: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for each in ([0.0, 2.0], [1.0, -2.0], [2.5, 0.5], [3.0, 1.0], [-1.0, 0.5]):
        assert _outcome(static, torch.tensor(each)) == _outcome(function, torch.tensor(each))


@pytest.mark.parametrize("function", [until_any, while_all, summed], ids=lambda function: function.__name__)
def test_in_a_file(function: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "saved.pt2"
    sg.save(function, path, args=(torch.tensor([0.0, 2.0]),))
    loaded = sg.load(path)
    for each in ([0.0, 2.0], [1.0, -2.0], [2.5, 0.5], [-1.0, 0.5]):
        assert loaded(torch.tensor(each)) == function(torch.tensor(each))


class Doubling:
    def grow(self, x):
        return x * 2


class Growing(Doubling):
    def all(self, x):
        return [super().grow(v) for v in x.unbind(0)]

    def assigning(self, x):
        return [y for v in x.unbind(0) if (y := super().grow(v)) is not None]

    def variables(self, x):
        return [sorted(locals()) for v in x.tolist() if (y := v) is not None]  # noqa: F841  # locals() shows it


@pytest.mark.parametrize("full", [True, False], ids=["full", "segments"])
@pytest.mark.parametrize("name", ["all", "assigning", "variables"])
def test_what_looks_at_the_frame_of_a_comprehension_finds_pythons(name: str, full: bool) -> None:
    """Before Python 3.12 that frame is the comprehension's own, of which the first variable is an iterator."""
    x, method = torch.ones(2), getattr(Growing(), name)
    try:
        expected = repr(method(x))
    except TypeError as error:
        expected = str(error)
    try:
        given = repr(sg.to_static(method, full_graph=full, backend="eager")(x))
    except TypeError as error:
        given = str(error)
    except sg.CaptureError as error:
        given = expected if full and error.reason.code in ("SG104", "SG301") else str(error)
    assert given == expected


def test_such_a_comprehension_stays_one_where_python_gives_it_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "super().grow(v)", "locals()", "builtins.eval('v')", "v"
    kept = []
    for inlines in (False, True):
        monkeypatch.setattr(assigning, "INLINES_COMPREHENSIONS", inlines)
        for read in names:
            node = ast.parse(f"[y for v in x if (y := {read})]", mode="eval").body
            assert isinstance(node, ast.ListComp)
            kept.append(assigning._assigns(node))
    assert kept == [True] * 4 + [False] * 3 + [True]
