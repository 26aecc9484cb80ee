"""Objects of classes with ``__slots__``: made, joined, carried, changed, listed, returned and stored."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

CALLS = [torch.tensor(v) for v in ([3.0, 1.0, 2.0], [-0.5, 1.0, -2.0], [0.0, 5.0, 1.0])]


class Node:
    """A value and a count."""

    __slots__ = ("count", "value")

    def __init__(self, value: Any, count: Any) -> None:
        self.value, self.count = value, count


class Named(Node):
    """Has a dictionary beside the slots of its base."""

    def __init__(self, value: Any, count: Any, name: str) -> None:
        super().__init__(value, count)
        self.name = name


class Private:
    """Has a slot whose name Python changes, and one that may be empty."""

    __slots__ = ("__held", "maybe")

    def __init__(self, held: Any) -> None:
        self.__held = held

    @property
    def held(self) -> Any:
        """What it holds."""
        return self.__held


@dataclasses.dataclass(slots=True)
class State:
    """A step and a value."""

    value: Tensor
    step: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """The same, that nobody may change."""

    value: Tensor
    step: int = 0


def parts(node: Any) -> Any:
    names = ("value", "count", "step", "name")
    return type(node).__name__, *(getattr(node, name) for name in names if hasattr(node, name))


def made_in_each_iteration(x: Tensor) -> Any:
    node = Node(x[0] + 1, 0)
    while node.value.abs() < 10:
        node = Node(node.value * 2 + 1, node.count + 1)
    return parts(node)


def changed_in_each_iteration(x: Tensor) -> Any:
    node = Named(x[0] + 1, 0, "a")
    while node.value.abs() < 10:
        node.value = node.value * 2 + 1
        node.count += 1
    node.name += "b"
    return parts(node)


def made_on_one_path(x: Tensor) -> Any:
    state = State(x[0])
    if x.sum() > 0:
        state = State(x[1], 1)
    else:
        state.step = 5
    return parts(state)


def frozen_and_replaced(x: Tensor) -> Any:
    state = Frozen(x[0] + 1)
    while state.value.abs() < 10:
        state = dataclasses.replace(state, value=state.value * 2 + 1, step=state.step + 1)
    return parts(state)


def listed(x: Tensor) -> Any:
    nodes = []
    for i, v in enumerate(x[x > -1].tolist()):
        nodes.append(Node(v, i))
    nodes[0].count = 7
    return [parts(node) for node in nodes]


def in_a_tree(x: Tensor) -> Any:
    node = Private(Private(x))
    if x.sum() > 0:
        node = Private(Private(x * 2))
        node.maybe = 1
    return node.held.held, hasattr(node, "maybe")


FUNCTIONS = [
    *(made_in_each_iteration, changed_in_each_iteration, made_on_one_path, frozen_and_replaced, listed, in_a_tree),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(function(x), static(x))


MAKERS: dict[str, Callable[[Any], Any]] = {
    "node": lambda v: Node(v, 1),
    "named": lambda v: Named(v, 1, "a"),
    "state": State,
    "frozen": Frozen,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_it_is_returned(make: Callable[[Tensor], Any]) -> None:
    def returned(x: Tensor) -> Any:
        first = make(x[0])
        return make(x[1]) if x.sum() > 0 else first, [make(v) for v in x if v > -1], first

    static = sg.to_static(returned, backend="eager", full_graph=True)
    for x in CALLS:
        expected, actual = returned(x), static(x)
        flat = ((found[0], *found[1], found[2]) for found in (expected, actual))
        for one, other in zip(*flat, strict=True):
            assert_same(parts(one), parts(other))


def test_an_argument_is_read_and_changed() -> None:
    def changed(state: State, x: Tensor) -> Tensor:
        if x.sum() > 0:
            state.value = state.value + x
            state.step += 1
        return state.value * state.step

    static = sg.to_static(changed, backend="eager", full_graph=True)
    for x in CALLS:
        eager = State(x.clone(), 2)
        given = copy.deepcopy(eager)
        assert_same(changed(eager, x), static(given, x))
        assert_same((eager.value, eager.step), (given.value, given.step))


class Hiding(Node):
    """Has a slot that hides one of its base."""

    __slots__ = ("value",)


def test_a_slot_that_hides_another_is_not_lost() -> None:
    def hidden(x: Tensor) -> Any:
        made = Hiding(x[0], 1)
        vars(Node)["value"].__set__(made, x[1])
        return made

    with pytest.raises(sg.CaptureError, match="SG306"):
        sg.to_static(hidden, backend="eager", full_graph=True)(CALLS[0])
