"""What a condition says of values that another condition decided, and objects that two paths make."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.operators.asserting import asked_in_many_ways
from tests.unit.trace.agreement import agree, refusal

UP, DOWN, MIXED = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]), torch.tensor([3.0, -1.0])
CALLS = (UP, DOWN, MIXED)


class Box:
    def __init__(self, value: Any, tag: str = "t") -> None:
        self.value = value
        self.tag = tag
        self.log: list[Any] = []

    def up(self) -> Box:
        self.value = self.value + 1
        self.log.append(self.value)
        return self


class Slots:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


# ---- objects
def two_objects(x: Tensor) -> Any:
    box = Box(x) if x.sum() > 0 else Box(x * 2)
    return box.value, box.up().value, len(box.log), box.tag


def unlike_objects(x: Tensor) -> Any:
    if x.sum() > 0:
        box = Box(x, "a").up()
    else:
        box = Box(x * 2, "b")
    box.value = box.value * 3
    return box.value, box.tag, box.log


def one_object_in_two_places(x: Tensor) -> Any:
    a = Box(x)
    if x.sum() > 0:
        a = Box(a.value * 2)
        both = [a, a]
    else:
        both = [a, Box(x)]
    return both[0].value, both[1].value, a.value


def best_object(x: Tensor) -> Any:
    best = Box(x[0])
    for value in x[1:]:
        candidate = Box(value)
        if value > best.value:
            best = candidate
    return best.value


# ---- maybe-values
def container_or_none(x: Tensor) -> Any:
    d = None
    if x.sum() > 0:
        d = {"k": x * 2, "l": [x]}
    if d is not None:
        x = x + d["k"]
        d["l"].append(x)
    return x, d


def object_or_none(x: Tensor) -> Any:
    box = None
    if x.sum() > 0:
        box = Box(x)
    if box is None:
        return x - 1
    box.value = box.value + 1
    return box.value * 2


def asked_with_another_condition(x: Tensor) -> Any:
    mode = [x] if x.sum() > 0 else None
    if mode is not None and x[0] > 1.5:
        mode.append(x)
    if mode is None or len(mode) < 2:
        return x, mode
    return x + mode[1], mode


def asked_in_a_loop(x: Tensor) -> Any:
    found = None
    if x.sum() > 0:
        found = {"v": x}
    count = 0
    while x.abs().sum() < 20:
        x = x * 2
        if found is not None:
            x = x + found["v"]
            count += 1
    return x, count


def the_same_condition_again(x: Tensor) -> Any:
    positive = x.sum() > 0
    y = x if positive else [x, x]
    if positive:
        return y + 1
    return y[1] - 1


def asked_of_itself(x: Tensor) -> Any:
    s, n = x.sum(), 0
    while n < 1 and ((s and s) > 0):
        n += 1
        if s > 0 and s:
            s = s + 1
    return s, n


def written_meanwhile(x: Tensor) -> Any:
    positive = x.sum() > 0
    y = x if positive else x.unsqueeze(0)
    positive.logical_not_()
    if positive:
        return y.dim(), y + 1
    return y.dim(), y - 1


def slots(x: Tensor) -> Any:
    return (Slots(x) if x.sum() > 0 else Slots(x * 2)).value


@pytest.mark.parametrize(
    "function",
    [
        *(two_objects, unlike_objects, one_object_in_two_places, best_object, container_or_none, object_or_none),
        *(asked_in_many_ways, asked_with_another_condition, asked_in_a_loop, the_same_condition_again),
        *(asked_of_itself, written_meanwhile, slots),
    ],
)
@pytest.mark.parametrize("first", range(3))
def test_agrees(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])


def itself(x: Tensor) -> Any:
    box = Box(x)
    if x.sum() > 0:
        box = Box(x)
        box.tag = box  # type: ignore[assignment]  # it contains itself
    else:
        box = Box(x + 1)
        box.tag = box  # type: ignore[assignment]
    return box.value


def asked_for_something_else(x: Tensor) -> Any:
    box = Box(x) if x.sum() > 0 else None
    return box.value if x[0] > 1 else x  # type: ignore[union-attr]  # the user's fault


@pytest.mark.parametrize(
    ("function", "code"), [(itself, "SG203"), (asked_for_something_else, "SG209")]
)
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code
