"""A path that is not taken, and a loop of no iterations, leave what is stored the very objects that it was.

Names that are only assigned are read by no code: what they hold is written back where a path does not assign them.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.front_ends import bytecode, through_bytecode

_ = bytecode


@dataclasses.dataclass
class Record:
    hidden: Tensor
    n: int = 0


class Plain:
    def __init__(self, hidden: Any, n: int = 0) -> None:
        self.hidden, self.n = hidden, n


class Pair(NamedTuple):
    hidden: Tensor
    n: int = 0


class Holder:
    kept: Any = None


class Keeps(nn.Module):
    def forward(self, h, make):
        if h.sum() < 6:
            self.kept = make(h)
        return h


last: Any = None
holder, table, listed, keeps = Holder(), {"kept": None}, [None], Keeps()
elsewhere = types.ModuleType("tests.elsewhere_not_taken")
MAKERS: dict[str, Callable[[Tensor], Any]] = {
    "tensor": lambda h: h * 1,
    "number": lambda h: 5,
    "staged number": lambda h: h.sum().item(),
    "text": lambda h: "made",
    "none": lambda h: None,
    "dataclass": lambda h: Record(h, 5),
    "object": Plain,
    "named tuple": Pair,
    "tuple": lambda h: (h, 5),
    "list": lambda h: [h, 5],
    "dict": lambda h: {"hidden": h, "n": 5},
    "nested": lambda h: {"a": [h, Record(h, 2)], "b": (h, (h, 1))},
}


def to_global(h, make):
    global last
    if h.sum() < 6:
        last = make(h)
    return h


def _helps(h, make):
    global last
    if h.sum() < 6:
        last = make(h)


def by_helper(h, make):
    _helps(h, make)
    return h + 0


def to_global_in_loop(h, make):
    global last
    while h.sum() < 6:
        last = make(h)
        h = h + 3
    return h


def to_global_in_branch_in_loop(h, make):
    global last
    while h.sum() < 6:
        if h.sum() > 1:
            last = make(h)
        h = h + 3
    return h


def to_attribute(h, make):
    if h.sum() < 6:
        holder.kept = make(h)
    return h


def to_attribute_in_loop(h, make):
    while h.sum() < 6:
        holder.kept = make(h)
        h = h + 3
    return h


def to_item(h, make):
    if h.sum() < 6:
        table["kept"] = make(h)
    return h


def to_item_in_loop(h, make):
    while h.sum() < 6:
        table["kept"] = make(h)
        h = h + 3
    return h


def to_element(h, make):
    if h.sum() < 6:
        listed[0] = make(h)
    return h


def to_class(h, make):
    if h.sum() < 6:
        Holder.kept = make(h)
    return h


def to_module(h, make):
    return keeps(h, make)


def to_python_module(h, make):
    if h.sum() < 6:
        elsewhere.kept = make(h)
    return h


def in_nested_branches(h, make):
    global last
    if h.sum() < 6:
        if h.sum() > 1:
            last = make(h)
        else:
            h = h + 1
    return h


def put(value: Any) -> None:
    global last
    last = holder.kept = table["kept"] = listed[0] = Holder.kept = keeps.kept = elsewhere.kept = value  # type: ignore[attr-defined]


HELD: dict[Callable[..., Any], Callable[[], Any]] = {
    **dict.fromkeys(
        (to_global, by_helper, to_global_in_loop, to_global_in_branch_in_loop, in_nested_branches), lambda: last
    ),
    **dict.fromkeys((to_attribute, to_attribute_in_loop), lambda: holder.kept),
    **dict.fromkeys((to_item, to_item_in_loop), lambda: table["kept"]),
    to_element: lambda: listed[0],
    to_class: lambda: Holder.kept,
    to_module: lambda: keeps.kept,
    to_python_module: lambda: elsewhere.kept,  # type: ignore[attr-defined]
}
ONCE = [
    *((to_global, kind) for kind in MAKERS),
    *((to_global_in_loop, kind) for kind in ("tensor", "text", "dataclass", "nested")),
    *((place, kind) for place in HELD for kind in ("tuple", "dict") if place not in (to_global, to_global_in_loop)),
]
ALL = [(place, kind) for place in HELD for kind in MAKERS]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(__import__("sys").modules, elsewhere.__name__, elsewhere)
    yield
    put(None)


def _shown(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_shown(each) for each in value]
    return (type(value).__name__, _shown(vars(value))) if isinstance(value, (Record, Plain)) else value


def _story(function: Callable[..., Any], place: Callable[..., Any], make: Callable[[Tensor], Any]) -> list[Any]:
    """What is found after each call, and whether it is the object from before; the last object is put there by hand."""
    get, told = HELD[place], []
    put(make(torch.tensor([0.0])))
    for value in (3.0, 9.0, 2.0, 9.0):
        before = get()
        function(torch.tensor([value]), make)
        told.append((_shown(get()), get() is before))
    put(make(torch.tensor([77.0])))
    before = get()
    function(torch.tensor([9.0]), make)
    return [*told, (_shown(get()), get() is before)]


def _compare(place: Callable[..., Any], kind: str, full_graph: bool) -> None:
    expected = _story(place, place, MAKERS[kind])
    assert expected[-1][1]
    assert _story(sg.to_static(place, backend="eager", full_graph=full_graph), place, MAKERS[kind]) == expected


@pytest.mark.parametrize(("place", "kind"), ONCE, ids=lambda each: getattr(each, "__name__", each))
def test_what_is_stored_stays_itself(place: Callable[..., Any], kind: str) -> None:
    _compare(place, kind, full_graph=True)


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("kind", ["tensor", "text", "tuple"])
def test_it_does_through_bytecode(kind: str) -> None:
    _compare(to_global_in_loop, kind, full_graph=True)
    _compare(in_nested_branches, kind, full_graph=True)


@pytest.mark.parametrize("place", [to_global, to_attribute_in_loop], ids=lambda each: each.__name__)
def test_it_does_in_segments(place: Callable[..., Any]) -> None:
    _compare(place, "nested", full_graph=False)


@pytest.mark.slow
@pytest.mark.parametrize("through", ["source", "bytecode", "segments"])
@pytest.mark.parametrize(("place", "kind"), ALL, ids=lambda each: getattr(each, "__name__", each))
def test_every_kind_in_every_place(place: Callable[..., Any], kind: str, through: str) -> None:
    if through == "bytecode":
        with through_bytecode():
            _compare(place, kind, full_graph=True)
    else:
        _compare(place, kind, full_graph=through == "source")


def test_what_a_loop_returns_is_the_argument_it_began_with() -> None:
    def count(state, h):
        while h.sum() < 6:
            state = {"h": h}
            h = h + 3
        return state

    static = sg.to_static(count, backend="eager")
    state = {"h": torch.ones(1)}
    assert static(state, torch.tensor([9.0])) is state
    assert static(state, torch.tensor([2.0]))["h"].tolist() == [5.0]


def test_what_an_iteration_puts_back_is_the_object_from_before() -> None:
    def there_and_back(h):
        first = holder.kept
        while h.sum() < 6:
            holder.kept = first if h.sum() > 4 else (h, 1)
            h = h + 3
        return h

    static = sg.to_static(there_and_back, backend="eager")
    for begin in (0.0, 2.0, 9.0):
        holder.kept = (torch.ones(1), 1)
        before = holder.kept
        there_and_back(torch.tensor([begin]))
        expected = _shown(holder.kept), holder.kept is before
        holder.kept = before
        static(torch.tensor([begin]))
        assert (_shown(holder.kept), holder.kept is before) == expected
