from __future__ import annotations

import collections
import types
from typing import Any

import pytest
import torch
from torch import nn

from stillgraph.program.sources import Argument
from stillgraph.trace.effects.modules import ModuleTables
from stillgraph.trace.heap.contents import copy_contents, replace_contents
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import (
    MISSING,
    AttributePlace,
    CellPlace,
    ContentsPlace,
    GlobalPlace,
    PersistencePlace,
    Place,
    TablePlace,
)
from stillgraph.trace.sources.sources import Finder


class Plain:
    pass


class Slotted:
    __slots__ = ("name",)


def module() -> nn.Module:
    made = nn.Linear(2, 2)
    made.register_buffer("buffer", torch.zeros(1))
    return made


def cell() -> Any:
    return types.CellType()


@pytest.mark.parametrize(
    "place",
    [
        AttributePlace(Plain(), "name"),
        AttributePlace(Slotted(), "name"),
        AttributePlace(nn.Module(), "name"),
        GlobalPlace({}, "name"),
        CellPlace(cell(), "name"),
    ],
)
def test_a_place_is_written_and_emptied(place: Place) -> None:
    assert place.get() is MISSING
    place.set(1)
    assert place.get() == 1
    place.set(None)
    assert place.get() is None
    place.set(MISSING)
    assert place.get() is MISSING
    place.set(MISSING)
    assert place.get() is MISSING


@pytest.mark.parametrize(
    ("name", "value"),
    [("weight", nn.Parameter(torch.ones(2, 2))), ("buffer", torch.ones(1)), ("inner", nn.ReLU()), ("plain", 3)],
)
def test_every_table_of_a_module(name: str, value: object) -> None:
    target = module()
    before = dict(target.state_dict())
    place, journal = AttributePlace(target, name), Journal()
    journal.write(place, value)
    assert place.get() is value
    journal.rollback(0)
    assert list(target.state_dict()) == list(before)
    assert getattr(target, name, None) is not value


def test_places_are_told_apart() -> None:
    first, second = Plain(), Plain()
    keys = {
        AttributePlace(first, "a").key,
        AttributePlace(first, "b").key,
        AttributePlace(second, "a").key,
        ContentsPlace([]).key,
        GlobalPlace({}, "a").key,
        CellPlace(cell(), "a").key,
    }
    assert len(keys) == 6
    assert AttributePlace(first, "a").key == AttributePlace(first, "a").key


@pytest.mark.parametrize(
    ("container", "other"),
    [
        ([1, 2], [3]),
        ({"a": 1}, {"b": 2, "c": 3}),
        ({1, 2}, {3}),
        (collections.deque([1, 2], maxlen=2), [3]),
        (collections.OrderedDict(a=1), {"b": 2}),
        (collections.Counter("aab"), {"c": 1}),
    ],
)
def test_contents_are_replaced_in_place(container: Any, other: Any) -> None:
    before = copy_contents(container)
    assert before is not container
    kind = type(container)
    replace_contents(container, other)
    assert copy_contents(container) == other
    replace_contents(container, before)
    assert copy_contents(container) == before
    assert type(container) is kind


def test_writes_are_undone_latest_first() -> None:
    target, journal = Plain(), Journal()
    place = AttributePlace(target, "n")
    for n in range(3):
        journal.write(place, n)
    mark = journal.mark
    journal.write(place, 10)
    journal.write(AttributePlace(target, "other"), 1)
    assert {write.place.name: write.before for write in journal.written(mark).values()} == {"n": 2, "other": MISSING}
    journal.rollback(mark)
    assert vars(target) == {"n": 2}
    journal.rollback(0)
    assert vars(target) == {}
    assert journal.mark == 0


def test_what_held_before_the_first_write_counts() -> None:
    target, journal = Plain(), Journal()
    place = AttributePlace(target, "n")
    place.set("first")
    journal.write(place, "second")
    journal.write(place, "third")
    (write,) = journal.written(0).values()
    assert write.before == "first"


def test_some_writes_can_be_kept() -> None:
    mine, theirs, journal = Plain(), Plain(), Journal()
    journal.write(AttributePlace(mine, "n"), 1)
    journal.write(AttributePlace(theirs, "n"), 2)
    journal.rollback(0, lambda place: place.target is theirs)  # type: ignore[attr-defined]
    assert vars(mine) == {"n": 1}
    assert vars(theirs) == {}


def test_noted_and_then_changed_by_hand() -> None:
    values, journal = [1, 2], Journal()
    journal.note(ContentsPlace(values))
    values.append(3)
    values[0] = 7
    journal.rollback(0)
    assert values == [1, 2]


# ---- modules, and what is written to them behind the journal's back
def tables(module: nn.Module) -> dict[str, list[str]]:
    return {name: list(module.__dict__[name]) for name in ("_parameters", "_buffers", "_modules")}


def test_an_attribute_goes_back_to_its_table() -> None:
    module = nn.Linear(2, 2)
    module.none = None
    module.register_buffer("buffer", torch.zeros(1), persistent=False)
    before, weight, journal = tables(module), module.weight, Journal()
    for name, value in (("none", nn.Parameter(torch.ones(1))), ("weight", None), ("buffer", None), ("bias", None)):
        journal.write(AttributePlace(module, name), value)
    journal.rollback(0)
    assert tables(module) == before
    assert module.weight is weight
    assert vars(module)["none"] is None
    assert list(module.state_dict()) == ["weight", "bias"]


def test_a_table_is_kept() -> None:
    module = nn.Module()
    TablePlace(module, "late", "_buffers").set(torch.ones(1))
    assert list(module._buffers) == ["late"]
    PersistencePlace(module, "late").set(False)
    assert not module.state_dict()


def test_what_torch_writes_on_its_own_is_found_and_undone() -> None:
    module, journal = nn.Linear(2, 2), Journal()
    found = Finder((module,), {})
    found.complete()
    watch = ModuleTables(list(found.everything()))
    journal.watches.append(watch)
    module.register_buffer("late", torch.zeros(1), persistent=False)
    mark = journal.mark
    module._parameters["bias"] = None
    journal.note(AttributePlace(module, "bias"))
    module.bias = None
    assert [str(write.place) for write in journal.written(0).values()] == [
        *("Linear.late", "Linear.late, persistent"),
        "Linear.bias",
    ]
    journal.rollback(mark)
    assert module.bias is not None
    assert hasattr(module, "late")
    journal.rollback(0)
    assert not hasattr(module, "late")
    assert watch.restore() is None
    assert not module._non_persistent_buffers_set


def test_a_hook_that_is_left_is_found() -> None:
    module = nn.Linear(2, 2)
    watch = ModuleTables([(module, Argument(0))])
    module.register_forward_hook(print)
    change = watch.restore()
    assert str(change) == "Linear._forward_hooks"
    assert not module._forward_hooks
