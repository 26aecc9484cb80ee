"""An object with two names stays one object, whatever list, dict or object it is put into on one path only."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph import CaptureError
from tests.sampling import few
from tests.unit.bytecode.segmented import CALLS, agrees

SHORT = tuple((args[0] / 4,) for args in CALLS)  # a loop makes few iterations


class Box:
    pass


@dataclasses.dataclass
class Held:
    items: list[int]


def put_in_and_changed(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    if x.sum() > 0:
        outer.append(inner)
        inner.append(1)
    return outer


def a_dict_put_in_and_changed(x: Tensor) -> Any:
    inner: dict[str, int] = {}
    outer = []
    if x.sum() > 0:
        outer.append(inner)
        inner["k"] = 1
    return outer


def a_set_put_in_and_changed(x: Tensor) -> Any:
    inner: set[int] = set()
    outer = []
    if x.sum() > 0:
        outer.append(inner)
        inner.add(1)
    return outer


def in_a_deque(x: Tensor) -> Any:
    inner: list[int] = []
    outer: Any = collections.deque()
    if x.sum() > 0:
        outer.append(inner)
        inner.append(1)
    return list(outer)


def in_a_tuple(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    if x.sum() > 0:
        outer.append((inner, 5))
        inner.append(1)
    return outer


def in_an_attribute(x: Tensor) -> Any:
    inner: list[int] = []
    box: Any = Box()
    box.items = []
    if x.sum() > 0:
        box.items.append(inner)
        inner.append(1)
    return box.items


def deeper(x: Tensor) -> Any:
    inner: list[list[int]] = [[]]
    outer = []
    if x.sum() > 0:
        outer.append(inner)
        inner[0].append(1)
    return outer


def of_a_dataclass(x: Tensor) -> Any:
    held = Held([])
    outer = []
    if x.sum() > 0:
        outer.append(held)
        held.items = [4]
    return [each.items for each in outer]


def in_a_loop(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    while x.sum() < 0:
        outer.append(inner)
        inner.append(1)
        x = x + 1
    return outer


def in_a_try(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    try:
        outer.append(inner)
        if x.sum() < 0:
            raise ValueError
        inner.append(1)
    except ValueError:
        inner.append(2)
    return outer


def new_on_each_path(x: Tensor) -> Any:
    groups = []
    if x.sum() > 0:
        current: list[int] = []
        groups.append(current)
    else:
        current = []
    current.append(1)
    return groups


def an_object_new_on_each_path(x: Tensor) -> Any:
    groups = []
    if x.sum() > 0:
        box: Any = Box()
        groups.append(box)
        box.value = 2
    else:
        box = Box()
        box.value = 3
    box.value = box.value + 1
    return [each.value for each in groups]


def given_back_with_its_list(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    if x.sum() > 0:
        outer.append(inner)
    return inner, outer


def changed_behind(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    if x.sum() > 0:
        outer.append(inner)
    inner.append(1)
    return outer, [each is inner for each in outer]


def begun_anew(x: Tensor) -> Any:
    current: list[int] = []
    groups = [current]
    if x.sum() > 0:
        current = []
        groups.append(current)
    current.append(1)
    return groups


def changed_behind_a_loop(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    while x.sum() < 0:
        outer.append(inner)
        x = x + 1
    inner.append(1)
    return outer


def changed_behind_a_try(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    try:
        if x.sum() < 0:
            raise ValueError
        outer.append(inner)
    except ValueError:
        x = x + 1
    inner.append(2)
    return outer


def changed_behind_a_step(x: Tensor) -> Any:
    inner: list[int] = []
    outer = []
    if x.sum() > 0:
        outer.append(inner)
    print("a step")
    inner.append(1)
    return outer


def in_two_lists(x: Tensor) -> Any:
    inner = [0]
    first: list[list[int]] = []
    second: list[list[int]] = []
    if x.sum() > 0:
        first.append(inner)
        second.append(inner)
    inner = []
    print("a step")
    if x.sum() > 0:
        second[0].append(3)
    return first, inner


def in_a_list_and_another_made_of_it(x: Tensor) -> Any:
    first = []
    if x.sum() > 0:
        first.append([0])
    second = first[:]
    print("a step")
    if second:
        second[0].append(3)
    return first


def in_what_is_called(x: Tensor) -> Any:
    inner = [0]
    outer = []

    def note() -> None:
        if x.sum() > 0:
            outer.append(inner)

    note()
    print("a step")
    inner.append(1)
    return outer


ALL = [
    *(put_in_and_changed, a_dict_put_in_and_changed, a_set_put_in_and_changed, in_a_deque, in_a_tuple),
    *(in_an_attribute, deeper, of_a_dataclass, in_a_loop, in_a_try, new_on_each_path, an_object_new_on_each_path),
    *(given_back_with_its_list, changed_behind, begun_anew, changed_behind_a_loop, changed_behind_a_try),
    *(changed_behind_a_step, in_two_lists, in_a_list_and_another_made_of_it, in_what_is_called),
]


@pytest.mark.parametrize("function", few(ALL, 2))
def test_in_segments(function: Callable[..., Any]) -> None:
    agrees(lambda record: function, *SHORT)
    agrees(lambda record: function, *reversed(SHORT))


WHOLE = [put_in_and_changed, a_dict_put_in_and_changed, in_a_tuple, in_an_attribute, deeper]


@pytest.mark.parametrize("function", WHOLE)
def test_as_one_program(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for args in SHORT:
        assert repr(static(*args)) == repr(function(*args))


@pytest.mark.parametrize("function", [each for each in ALL if each not in WHOLE])
def test_as_one_program_it_is_refused(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for args in SHORT:
        with pytest.raises(CaptureError, match=r"SG203|SG305|SG306"):
            static(*args)


def test_results_are_one_object() -> None:
    static: Any = sg.to_static(given_back_with_its_list, full_graph=False, strict=True, backend="eager")
    for x in (torch.ones(2), -torch.ones(2), torch.ones(2)):
        inner, outer = static(x)
        assert [each is inner for each in outer] == [True] * int(x.sum() > 0)


def test_lists_that_the_path_has_made_join_as_before() -> None:
    def rows(x: Tensor) -> Any:
        found = [[x]]
        if x.sum() > 0:
            row = [x]
            row.append(x * 2)
            found.append(row)
        return found, len(found)

    static = sg.to_static(rows, backend="eager")
    for args in CALLS:
        assert str(static(*args)) == str(rows(*args))
