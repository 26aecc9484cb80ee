"""Sets of classes: code that only asks whether something is in one comes to none of them; all other code may."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.runtime.calls.failed_captures import FailedCaptures


class First:
    scale = 2.0

    def __init__(self, value: Any) -> None:
        self.value = value


class Second(First):
    scale = 3.0


class Unused:
    scale = 5.0


REGISTRY = {First, Second, Unused}
LATER: set[type] = set()
ALIAS_OF = {First, Second, Unused}
ALIAS = ALIAS_OF
LISTED = {First, Second, Unused}
HANDED = {First, Second, Unused}
NAMED = {First, Second, Unused}
LOOKED_UP = {First, Second, Unused}
POPPED = {First, Second, Unused}
HELD = {First, Second, Unused}
KEPT = {"classes": HELD}


def _register(kind: type) -> None:
    if kind in REGISTRY:
        return
    REGISTRY.add(kind)


def asks(x: Any, item: Any) -> Any:
    _register(type(item))
    return x * type(item).scale if type(item) in REGISTRY else x


def asks_and_uses(x: Any, item: Any) -> Any:
    return x * item.scale * Unused.scale if type(item) in REGISTRY else x


def goes_through(x: Any, item: Any) -> Any:
    return x * sum(each.scale for each in LISTED) if type(item) in LISTED else x


def hands_over(x: Any, item: Any) -> Any:
    return x * _sum_of(HANDED) if type(item) in HANDED else x


def _sum_of(classes: set[type]) -> float:
    return float(sum(map(operator.attrgetter("scale"), classes)))


def by_another_name(x: Any, item: Any) -> Any:
    return x * sum(each.scale for each in ALIAS) if type(item) in ALIAS_OF else x


def by_its_name(x: Any, item: Any) -> Any:
    found = getattr(sys.modules[__name__], "NAMED")  # noqa: B009  # so it is asked for
    return x * _sum_of(found) if type(item) in NAMED else x


def by_a_made_name(x: Any, item: Any) -> Any:
    return x * _sum_of(globals()["LOOKED" + "_UP"]) if type(item) in LOOKED_UP else x


def by_what_holds_it(x: Any, item: Any) -> Any:
    return x * _sum_of(KEPT["classes"]) if type(item) in HELD else x


def by_a_copy(x: Any, item: Any) -> Any:
    return x * _sum_of(POPPED | LATER) if type(item) in POPPED else x


ALL = [
    *(asks_and_uses, goes_through, hands_over, by_another_name, by_its_name),
    *(by_a_made_name, by_what_holds_it, by_a_copy),
]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", ALL)
def test_classes_that_are_come_to(
    function: Callable[..., Any], full_graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {} if full_graph else {"full_graph": False, "strict": True}
    static = sg.to_static(function, backend="eager", **options)
    x, item = torch.ones(3), Second(1)
    assert torch.equal(static(x, item), function(x, item))
    for kind in (Unused, Second):
        monkeypatch.setattr(kind, "scale", kind.scale + 1.0)
        assert torch.equal(static(x, item), function(x, item))


@pytest.mark.parametrize("full_graph", [True, False])
def test_classes_that_are_only_asked_about(full_graph: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {} if full_graph else {"full_graph": False, "strict": True}
    static = sg.to_static(asks, backend="eager", **options)
    x = torch.ones(3)
    assert torch.equal(static(x, First(1)), asks(x, First(1)))
    guards = [str(guard) for program in static.programs for guard in program.guards]
    assert not [guard for guard in guards if guard.startswith(("Unused.", "Second."))]
    misses = static.cache_info().misses
    monkeypatch.setattr(Unused, "scale", 6.0)
    assert torch.equal(static(x, First(1)), asks(x, First(1)))
    assert static.cache_info().misses == misses
    monkeypatch.setattr(First, "scale", 7.0)
    assert torch.equal(static(x, First(1)), asks(x, First(1)))
    monkeypatch.setattr(sys.modules[__name__], "REGISTRY", {Second})
    assert torch.equal(static(x, First(1)), asks(x, First(1)))


class ByNumber(type):
    """Its classes are equal where their numbers are; what has none cannot be compared with them."""

    number: int

    def __eq__(cls, other: Any) -> bool:
        return bool(cls.number == other.number)

    def __hash__(cls) -> int:
        return 1


class One(metaclass=ByNumber):
    number = 1


class Two(metaclass=ByNumber):
    number = 2


NUMBERED = {One}


def asks_by_number(x: Any, item: Any) -> Any:
    return x * 2 if Two in NUMBERED else x


def asks_by_number_of_an_argument(x: Any, item: Any) -> Any:
    return x * 2 if type(item) in NUMBERED else x


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [asks_by_number, asks_by_number_of_an_argument])
@pytest.mark.parametrize("changed", [One, Two])
@pytest.mark.filterwarnings("error")
def test_classes_that_say_what_they_are_equal_to(
    changed: Any, function: Callable[..., Any], full_graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {} if full_graph else {"strict": True}
    static = sg.to_static(function, full_graph=full_graph, backend="eager", **options)
    x, seen = torch.ones(1), set()
    for number in (One.number, 3 - changed.number, 7, changed.number):
        monkeypatch.setattr(changed, "number", number)
        assert static(x, Two()).item() == function(x, Two()).item()
        seen.add(function(x, Two()).item())
    assert len(seen) == 2


class Numberless(metaclass=ByNumber):
    pass


def test_calls_that_cannot_be_captured_are_told_apart_by_which_class_it_is() -> None:
    failed = FailedCaptures()
    for item in (One(), Numberless(), One()):
        assert not failed.are_certain((item,), {})
        failed.add(ValueError(), (item,), {})
    assert failed.are_certain((One(),), {})
    assert not failed.are_certain((Numberless(),), {})


class Incomparable(ByNumber):
    __hash__ = type.__hash__  # the registries of abstract classes compare those of one hash


class Holds(metaclass=Incomparable):
    """Python asks its metaclass nothing here: whatever is told by a class is told by which class it is."""

    number = 3  # Python's registries compare a class with itself

    def __init__(self, x: Any) -> None:
        self.x = x

    def double(self) -> Any:
        return self.x * 2


def calls_a_method(x: Any) -> Any:
    return Holds(x).double()


def puts_into_a_list(x: Any) -> Any:
    held = [Holds(x)]
    held.append(Holds(x * 3))
    return sum(each.x for each in held)


def has_one_on_each_path(x: Any) -> Any:
    return (Holds(x) if x.sum() > 0 else Holds(-x)).x


def puts_into_a_dict(x: Any) -> Any:
    held = {"a": Holds(x)}
    held["b"] = Holds(x + 1)
    return held["b"].x, len(held)


def gives_one(x: Any) -> Any:
    return Holds(x)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.filterwarnings("error")
def test_objects_of_classes_that_cannot_be_compared(full_graph: bool) -> None:
    options: dict[str, Any] = {} if full_graph else {"strict": True}
    for function in (calls_a_method, puts_into_a_list, has_one_on_each_path, puts_into_a_dict, gives_one):
        static = sg.to_static(function, full_graph=full_graph, backend="eager", **options)
        for x in (torch.ones(2), -torch.ones(2)):
            found, wanted = static(x), function(x)
            assert repr(getattr(found, "x", found)) == repr(getattr(wanted, "x", wanted))


def test_segments_hand_on_objects_of_classes_that_cannot_be_compared() -> None:
    def waits(x: Any) -> Any:
        held = [Holds(x), (1, Holds(x + 1))]
        began = time.time() > 0
        by = held[0].number if x.sum() > 0 else 1
        time.sleep(0)
        return held[1][1].double() * by, began

    static = sg.to_static(waits, full_graph=False, backend="eager")
    for x in (torch.ones(2), -torch.ones(2)):
        assert repr(static(x)) == repr(waits(x))
