"""The columns of a list of which only the run knows the length: from its elements to them, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from stillgraph.program.constants import Known
from stillgraph.program.types import JoinFailure, TableType
from stillgraph.trace.values.containers import parts_of
from stillgraph.trace.values.lists import (
    INSTEAD,
    Element,
    Inner,
    Leaf,
    Node,
    Same,
    StagedList,
    StagedSpread,
    is_text,
    is_text_type,
    leaf_types,
    types,
)


@dataclass(frozen=True, eq=False)
class Items:
    """A column as it is put together from elements and other columns (those at the positions ``spread``)."""

    items: tuple[Any, ...]
    spread: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Alike:
    """A column that holds one constant as often as another column has elements."""

    value: Any
    column: StagedList


@dataclass(frozen=True, eq=False)
class Entries:
    """A column of texts, of which another has the numbers of their entries in a table."""

    numbers: StagedList
    entries: tuple[Known, ...]


def columns(element: Element, children: Sequence[Any]) -> list[Items]:
    """The elements of a list, taken apart into the columns of a structure that covers them."""
    rows = [_spread_leaves(element, c) if type(c) is StagedSpread else _leaves(element, c) or [0] for c in children]
    spread = tuple(index for index, child in enumerate(children) if type(child) is StagedSpread)
    return [Items(tuple(row[k] for row in rows), spread) for k in range(len(types(element)))]


def _spread_leaves(element: Element, spread: StagedSpread) -> list[Any]:
    given = iter(spread.columns)
    return _realigned(element, spread.element, given, spread.columns[0]) or [next(given)]


def _realigned(element: Element, mine: Element, given: Iterator[Any], first: StagedList) -> list[Any]:
    """The columns of a structure for the wider structure ``element``: lists known to be empty fit any."""
    if isinstance(element, Node) and isinstance(mine, Node):
        pairs = zip(element.children, mine.children)
        return [column for wide, narrow in pairs for column in _realigned(wide, narrow, given, first)]
    if isinstance(element, Inner) and isinstance(mine, Inner) and mine.element is None:
        return [next(given)] * len(leaf_types(element))
    if isinstance(element, Inner) and isinstance(mine, Node) and not mine.children:
        return [Alike(Items((), ()), first)] * len(leaf_types(element))
    if isinstance(mine, Same) and isinstance(element, Leaf):
        return [Alike(mine.value, first)]
    if isinstance(mine, Leaf) and isinstance(mine.type, TableType) and is_text(element):
        return [Entries(next(given), mine.type.entries)]
    if isinstance(element, Inner) and isinstance(mine, Node):
        _refuse_longer(element.kind)
    if [*map(is_text_type, leaf_types(element))] != [*map(is_text_type, leaf_types(mine))]:
        raise JoinFailure("SG203", "what the lists in a list hold were known texts, and becomes others", INSTEAD)
    if len(leaf_types(element)) != len(leaf_types(mine)) or _constants(element) != _constants(mine):
        raise JoinFailure("SG203", "what the lists in a list hold was one constant, and becomes others", INSTEAD)
    return [next(given) for _ in leaf_types(element)]


def _refuse_longer(kind: type) -> NoReturn:
    if kind is tuple:
        hint = "Put lists into it, by rows.append(list(row)): a list may become longer."
        raise JoinFailure("SG203", "a tuple in a list becomes longer or shorter", hint)
    raise JoinFailure("SG203", "a list in a list, of values of several kinds, becomes longer or shorter", INSTEAD)


def _constants(element: Element | None) -> int:
    """How many parts of a structure are constants."""
    if isinstance(element, Node):
        return sum(map(_constants, element.children))
    return _constants(element.element) if isinstance(element, Inner) else int(isinstance(element, Same))


def _leaves(element: Element, value: Any) -> list[Any]:
    if isinstance(element, Leaf):
        return [value]
    if isinstance(element, Node):
        parts = parts_of(value)
        return [leaf for child, v in zip(element.children, parts.children) for leaf in _leaves(child, v)]
    if isinstance(element, Inner):
        if element.element is None:
            assert not value, "a list that is taken for empty holds something"
            return [Items((), ())]
        return list(columns(element.element, value))
    return []


def rebuild(element: Element, row: Sequence[Any]) -> Any:
    """The element with these leaves; the lists in it are made anew."""
    return _rebuild(element, iter(row))


def _rebuild(element: Element, row: Iterator[Any]) -> Any:
    if isinstance(element, Leaf):
        return next(row)
    if isinstance(element, Node):
        return element.parts.rebuild([_rebuild(child, row) for child in element.children])
    if isinstance(element, Inner):
        width = len(leaf_types(element))
        inner = tuple(next(row) for _ in range(width))
        return element.kind(() if element.element is None else (StagedSpread(element.element, inner),))
    return element.value
