"""An object that a call asks to be another, or looks up, and also replaces: the entry of the call is guarded."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode


class Node:
    pass


class Slots:
    __slots__ = ("current", "left", "right", "table")


class Holder:
    current: Any
    left: Any
    right: Any
    table: Any


class Described:
    left: Any
    right: Any
    table: Any

    @property
    def current(self) -> Any:
        return self.kept

    @current.setter
    def current(self, value: Any) -> None:
        self.kept = value


class OfTheClass:
    current: Any = None
    left: Any = None
    right: Any = None
    table: Any = None


def toggled(h: Any, x: Tensor) -> Tensor:
    if h.current is h.left:
        h.current = h.right
        return x + 1
    h.current = h.left
    return x * 10


def toggled_if_equal(h: Any, x: Tensor) -> Tensor:
    if h.current == h.left:
        h.current = h.right
        return x + 1
    h.current = h.left
    return x * 10


def exchanged(h: Any, x: Tensor) -> Tensor:
    h.left, h.right = h.right, h.left
    return x + 1 if h.left is h.current else x * 10


def exchanged_in_the_dictionary(h: Any, x: Tensor) -> Tensor:
    d = h.__dict__
    d["left"], d["right"] = d["right"], d["left"]
    return x + 1 if h.left is h.current else x * 10


def three_places(h: Any, x: Tensor) -> Tensor:
    h.current, h.left = h.left, h.current
    h.left, h.right = h.right, h.left
    return x + (h.left is h.current) + 2 * (h.right is h.current)


def element(h: Any, x: Tensor) -> Tensor:
    table = h.table
    if table[0] is h.left:
        table[0] = h.right
        return x + 1
    table[0] = h.left
    return x * 10


def rotated(h: Any, x: Tensor) -> Tensor:
    h.table.append(h.table.pop(0))
    return x + 1 if h.table[0] is h.left else x * 10


def by_id(h: Any, x: Tensor) -> Tensor:
    if id(h.current) == id(h.left):
        h.current = h.right
        return x + 1
    h.current = h.left
    return x * 10


def as_a_key(h: Any, x: Tensor) -> Tensor:
    found = {h.left: 1, h.right: 2}[h.current]
    h.current = h.right if found == 1 else h.left
    return x + found


def among(h: Any, x: Tensor) -> Tensor:
    if any(each is h.current for each in (h.left,)):
        h.current = h.right
        return x + 1
    h.current = h.left
    return x * 10


def position(h: Any, x: Tensor) -> Tensor:
    found = [h.left, h.right].index(h.current)
    h.current = h.table[1 - found]
    return x + found


def chosen_in_the_run(h: Any, x: Tensor) -> Tensor:
    if x > 0:
        h.current = h.right if h.current is h.left else h.left
    return x + (1 if h.current is h.left else 0)


def deleted(h: Any, x: Tensor) -> Tensor:
    if getattr(h, "extra", None) is h.left:
        del h.extra
        return x + 1
    h.extra = h.left
    return x * 10


ATTRIBUTES = (toggled, exchanged, three_places, by_id, chosen_in_the_run)
OTHERS = (toggled_if_equal, exchanged_in_the_dictionary, element, rotated, as_a_key, among, position, deleted)
SIZES = itertools.cycle([1, 2])
MAKES: dict[str, Callable[[], Any]] = {
    "a plain object": object,
    "an object of a class": Node,
    "a tensor": lambda: torch.ones(2),
    "a module": torch.nn.ReLU,
    "a list": list,
    "a tuple": lambda: (Node(),),
    "an exception": ValueError,
    "a generator of numbers": torch.Generator,
    "a slice": lambda: slice(0),
    "a partial": lambda: partial(max),
    "a function": lambda: (lambda: 0),
    "a text": lambda: "".join(["a", "bc"]),
    "a number": lambda: float("1.5"),
    "a device": lambda: torch.device("cpu"),
    "sizes": lambda: torch.Size([next(SIZES)]),
}


def filled(h: Any, make: Callable[[], Any]) -> Any:
    h.left, h.right = make(), make()
    h.current, h.table = h.left, [h.left, h.right]
    return h


def calls(function: Callable[..., Any], *args: Any) -> list[Any]:
    """What four calls give; the text of what is raised counts as well."""
    results: list[Any] = []
    for _ in range(4):
        try:
            results.append(float(function(*args, torch.ones(()))))
        except RuntimeError as error:
            results.append(str(error))
    return results


def sizes_begin_anew() -> None:
    while MAKES["sizes"]()[0] != 2:
        pass


def agrees(function: Callable[..., Any], holder: type, make: Callable[[], Any], full_graph: bool) -> None:
    sizes_begin_anew()
    expected = calls(function, filled(holder() if holder is not OfTheClass else OfTheClass, make))
    sizes_begin_anew()
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    assert calls(static, filled(holder() if holder is not OfTheClass else OfTheClass, make)) == expected


@pytest.mark.parametrize("made", ["an object of a class", "a tensor", "a slice"])
@pytest.mark.parametrize("function", [toggled, exchanged], ids=lambda f: f.__name__)
def test_what_is_asked_to_be_another_and_replaced_is_guarded(function: Callable[..., Any], made: str) -> None:
    agrees(function, Holder, MAKES[made], full_graph=True)


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (toggled_if_equal, "a plain object"),
        (three_places, "an object of a class"),
        (as_a_key, "a tensor"),
        (chosen_in_the_run, "a tuple"),
        (toggled, "a text"),
        (toggled_if_equal, "sizes"),
        (by_id, "a number"),
        (toggled, "a module"),
    ],
)
def test_so_is_what_is_looked_up_or_equal_to_itself_alone(function: Callable[..., Any], made: str) -> None:
    agrees(function, Holder, MAKES[made], full_graph=True)


@pytest.mark.parametrize("holder", [Slots, Described, OfTheClass])
def test_so_it_is_in_slots_in_properties_and_in_classes(holder: type) -> None:
    agrees(toggled, holder, Node, full_graph=True)


def test_so_it_is_through_bytecode_and_in_segments() -> None:
    with through_bytecode():
        agrees(toggled, Holder, Node, full_graph=True)
        agrees(exchanged, Holder, Node, full_graph=False)


@pytest.mark.parametrize("function", [toggled, exchanged, by_id])
def test_a_number_is_the_object_that_it_was_in_segments_too(function: Callable[..., Any]) -> None:
    agrees(function, Holder, MAKES["a number"], full_graph=False)


@pytest.mark.slow
@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize("made", MAKES)
def test_every_kind_of_object_in_every_place(made: str, front_end: str) -> None:
    compares_elements = made == "a tensor"
    unhashable = made in ("a list", "a slice", "a tuple", "sizes", "a text", "a number", "a device")
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        for function in (*ATTRIBUTES, *OTHERS):
            if compares_elements and function in (toggled_if_equal, position):
                continue  # two of several elements have no one truth value
            if unhashable and function is as_a_key:
                continue  # or equal keys
            agrees(function, Holder, MAKES[made], full_graph=True)
            agrees(function, Holder, MAKES[made], full_graph=False)
        for holder in (Slots, Described, OfTheClass):
            agrees(toggled, holder, MAKES[made], full_graph=True)


LAST: Any = None
ONE: Any = None
TWO: Any = None


def toggled_global(x: Tensor) -> Tensor:
    global LAST
    if LAST is ONE:
        LAST = TWO
        return x + 1
    LAST = ONE
    return x * 10


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("make", [Node, torch.nn.ReLU, MAKES["a number"]])
def test_globals_and_outer_variables_too(make: Callable[[], Any], full_graph: bool) -> None:
    global LAST, ONE, TWO
    LAST = ONE = make()
    TWO = make()
    expected = [2.0, 10.0, 2.0, 10.0]
    assert calls(sg.to_static(toggled_global, backend="eager", full_graph=full_graph)) == expected
    left, right = make(), make()
    current = left

    def toggled_outer(x: Tensor) -> Tensor:
        nonlocal current
        if current is left:
            current = right
            return x + 1
        current = left
        return x * 10

    assert calls(sg.to_static(toggled_outer, backend="eager", full_graph=full_graph)) == expected


def are_one(a: Any, b: Any, x: Tensor) -> Tensor:
    return x + 1 if a is b else x * 10


@pytest.mark.parametrize("made", ["a text", "a number", "a device"])
def test_equal_arguments_are_one_object_or_two(made: str) -> None:
    one, two = MAKES[made](), MAKES[made]()
    static = sg.to_static(are_one, backend="eager")
    x = torch.ones(())
    given = [static(*pair, x).item() for pair in ((one, one), (one, two), (two, two), (one, one), (two, one))]
    assert given == [2, 10, 2, 2, 10]
    assert static.cache_info().programs == 2


def test_an_equal_text_is_not_the_literal() -> None:
    def trains(mode: str, x: Tensor) -> Tensor:
        return x + 1 if mode is TRAIN else x * 10

    static, x = sg.to_static(trains, backend="eager"), torch.ones(())
    assert [static(mode, x).item() for mode in (TRAIN, "".join(["tr", "ain"]), "eval", TRAIN)] == [2, 10, 10, 2]


TRAIN = "train"


class Keeping(torch.nn.Module):
    """Puts another object in place of one in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Any = None

    def forward(self, x: Tensor) -> Tensor:
        before = self.state
        self.state = Node()
        self.state.x = x
        return x if before is None else x + before.x


def test_an_object_made_in_each_call_needs_no_program_of_its_own() -> None:
    module, eager = sg.to_static(Keeping(), backend="eager"), Keeping()
    for number in range(5):
        x = torch.full((2,), float(number))
        assert torch.equal(module(x), eager(x))
    assert module.forward.cache_info().programs == 2
