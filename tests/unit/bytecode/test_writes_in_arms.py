"""What an arm writes to an object that was made behind a step of Python's is written on its path alone."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from tests.unit.bytecode.segmented import CALLS, agrees


class Box:
    def __init__(self, value: Tensor) -> None:
        self.value = value


def appended(x: Tensor) -> Any:
    print("a step")
    found = [x]
    if x.sum() > 0:
        found.append(x)
    return found


def taken_out(x: Tensor) -> Any:
    print("a step")
    found = collections.deque([x, x + 1])
    if x.sum() > 0:
        found.popleft()
    return [*found]


def put_in(x: Tensor) -> Any:
    print("a step")
    found = {"x": x}
    if x.sum() > 0:
        found["y"] = x
        del found["x"]
    return found


def added(x: Tensor) -> Any:
    print("a step")
    found = {1, 2}
    if x.sum() > 0:
        found.add(3)
    return found, x


def stored(x: Tensor) -> Any:
    print("a step")
    box, y = Box(x), x * 2
    if x.sum() > 0:
        box.value = y
    return box.value


def deep_inside(x: Tensor) -> Any:
    print("a step")
    found, y = {"all": [Box(x)]}, x * 2
    if x.sum() > 0:
        found["all"][0].value = y
    return found["all"][0].value


def not_where_something_is_raised(x: Tensor) -> Any:
    print("a step")
    found = [x]
    try:
        if x.sum() < 0:
            raise ValueError("low")
        found.append(x)
    except ValueError:
        x = x + 1
    return found, x


def in_a_loop(x: Tensor) -> Any:
    print("a step")
    found, y = [x], x * 2
    while x.sum() < 0:
        found.append(y)
        x = x + 3
    return found


def left_in_a_loop(x: Tensor) -> Any:
    print("a step")
    found = [x]
    for _ in range(3):
        if x.sum() < 0:
            break
        found.append(x)
    return found


def in_what_is_called(x: Tensor) -> Any:
    def inner(x: Tensor) -> Any:
        print("a step inside")
        found = [x]
        if x.sum() > 0:
            found.append(x)
        return found

    before = [x]
    return inner(x), before


def in_what_calls(x: Tensor) -> Any:
    def inner(x: Tensor, known: list[Tensor]) -> Tensor:
        print("a step inside")
        if x.sum() > 0:
            known.append(x)
        return x

    found = [x]
    y = inner(x, found)
    more = [y]
    if x.sum() > 0:
        more.append(y)
    return found, more


def through_a_closure(x: Tensor) -> Any:
    found: list[Tensor] = []

    def note(value: Tensor) -> None:
        if value.sum() > 0:
            found.append(value)

    print("a step")
    found = [x]
    note(x * 2)
    return found


@pytest.mark.parametrize(
    "function",
    [
        *(appended, taken_out, put_in, added, stored, deep_inside, not_where_something_is_raised, in_a_loop),
        *(left_in_a_loop, in_what_is_called, in_what_calls, through_a_closure),
    ],
)
def test_on_its_path_alone(function: Callable[..., Any]) -> None:
    agrees(lambda record: function, *CALLS)
    agrees(lambda record: function, *reversed(CALLS))
