"""One list with several names, where branches leave lists of different lengths: it is one list behind them as well."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

UP = torch.tensor([1.0, 2.0, 3.0])
MIXED = torch.tensor([1.0, -2.0, 3.0])
CALLS = [UP, -UP, UP, UP, -UP, -UP, MIXED, UP]
KEPT = types.SimpleNamespace()


def attributes(x: Tensor) -> Any:
    if x.sum() > 0:
        KEPT.l = KEPT.a = [1, 2]
    else:
        KEPT.l = KEPT.a = []
    KEPT.l.append(7)


def made_anew_on_one_path(x: Tensor) -> Any:
    b = KEPT.l
    if x.sum() > 0:
        KEPT.l = b = []
    b.append(1)


def of_a_dict(x: Tensor) -> Any:
    b = KEPT.d.get("q")
    if b is None or x.sum() > 0:
        b = KEPT.d["q"] = []
    b.append(x.max())
    return len(KEPT.d["q"])


def two_names(x: Tensor) -> Any:
    a = b = []
    if x.sum() > 0:
        a = b = [5]
    return a, b


def two_names_and_a_write(x: Tensor) -> Any:
    a = b = []
    if x.sum() > 0:
        a = b = [5]
    b.append(1)
    return a, b


def in_a_tuple(x: Tensor) -> Any:
    r: list[Any] = []
    a = (r, r)
    if x.sum() > 0:
        r = [5]
        a = (r, r)
    return a


def in_a_handler(x: Tensor) -> Any:
    try:
        a = b = [[1, 2, 3][int(x.max())]]
    except IndexError:
        a = b = []
    b.append(7)
    return a, b


def stored_on_one_path(x: Tensor) -> Any:
    a: Any = 0
    b: Any = 0
    if x.sum() > 0:
        a = b = KEPT.a = [1]
    return a is b, a is KEPT.a


def twice_in_a_list(x: Tensor) -> Any:
    r = None
    if x.sum() > 0:
        KEPT.a = [1]
        r = [KEPT.a, KEPT.a]
    return r


def stored_in_a_loop(x: Tensor) -> Any:
    a: Any = 0
    b: Any = 0
    for i in range(3):
        if x[i] > 0:
            a = b = KEPT.a = [1]
    return a is b, a is KEPT.a


def deques(x: Tensor) -> Any:
    a = b = collections.deque()
    if x.sum() > 0:
        a = b = collections.deque([5, 6])
    return list(a), len(b), a is b


def appended_by_two_branches(x: Tensor) -> Any:
    t = [x]
    r = []
    if x[0] > 0:
        r.append(t)
    if x[1] > 0:
        r.append(t)
    return r


def asked_of_elements(x: Tensor) -> Any:
    t = [x]
    r = []
    if x[0] > 0:
        r.append(t)
    if x[1] > 0:
        r.append(t)
    return len(r), (r[0] is r[1]) if len(r) == 2 else None


def appended_in_a_loop(x: Tensor) -> Any:
    t = [x]
    r = []
    for v in x:
        if v > 0:
            r.append(t)
    return r


def carried_and_appended(x: Tensor) -> Any:
    r, s, i = [], [x], 0
    while x[0] * 0 + i < 3:
        r.append(s)
        if x[i] > 0:
            s = [s[0] + 1]
        i += 1
    return r


def appended_twice_at_once(x: Tensor) -> Any:
    t = {"k": x}
    r = []
    if x[0] > 0:
        r.append((t, t))
    return r


def inserted(x: Tensor) -> Any:
    t = [x]
    r = []
    if x[0] > 0:
        r.append(t)
    r.insert(int(x[1] > 0), t)
    return r


def each_a_new_one(x: Tensor) -> Any:
    r = []
    if x[0] > 0:
        r.append([x.sum()])
    for v in x:
        if v > 0:
            r.append([v])
    return r


def carried_and_made_anew(x: Tensor) -> Any:
    r, s, i = [], [x], 0
    while x[0] * 0 + i < 3:
        r.append(s)
        s = [s[0] + 1]
        i += 1
    return r


CAPTURED = [
    attributes,
    two_names,
    in_a_tuple,
    in_a_handler,
    stored_on_one_path,
    twice_in_a_list,
    stored_in_a_loop,
    deques,
    each_a_new_one,
    carried_and_made_anew,
    made_anew_on_one_path,
    of_a_dict,
    two_names_and_a_write,
]
REFUSED = [
    appended_by_two_branches,
    asked_of_elements,
    appended_in_a_loop,
    carried_and_appended,
    appended_twice_at_once,
    inserted,
]


def _shape(value: Any, seen: dict[int, int]) -> Any:
    """A value with what is one object in it."""
    if isinstance(value, Tensor):
        return value.tolist()
    if not isinstance(value, (list, tuple, dict)):
        return value
    if not isinstance(value, tuple) and id(value) in seen:
        return f"object {seen[id(value)]}"
    seen[id(value)] = len(seen)
    children = value.items() if isinstance(value, dict) else value
    return type(value).__name__, [_shape(child, seen) for child in children]


def _story(function: Callable[[Tensor], Any]) -> list[Any]:
    vars(KEPT).clear()
    vars(KEPT).update(a=None, l=[1], d={})
    story = []
    for x in CALLS:
        result = function(x.clone())
        story.append(_shape((result, vars(KEPT)), {}))
    return story


@pytest.mark.parametrize("function", CAPTURED)
def test_one_list_stays_one(function: Callable[[Tensor], Any]) -> None:
    assert _story(sg.to_static(function, backend="eager")) == _story(function)


@pytest.mark.parametrize("function", REFUSED)
def test_what_a_program_cannot_tell_apart_is_refused(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError, match="SG305"):
        _story(sg.to_static(function, backend="eager"))


@pytest.mark.parametrize("function", CAPTURED + REFUSED)
def test_segments_leave_what_is_not_clear_to_python(function: Callable[[Tensor], Any]) -> None:
    partial = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    assert _story(partial) == _story(function)
