"""What elements of lists of unknown length have in them: what the user could change, and what stays as it is."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

from stillgraph.program.types import TableType, Type
from stillgraph.trace.values.containers import element_parts
from stillgraph.trace.values.lists import Element, Inner, Leaf, Node, Same, StagedSpread, leaf_types


def mutable_parts(element: Element, value: Any) -> Iterator[Any]:
    """The objects in an element that the user could change in place: a list of unknown length has only their values."""
    if isinstance(element, Inner):
        yield from (value,) if element.kind is list else ()
        if element.element is not None:
            for child in value:
                if type(child) is not StagedSpread:
                    yield from mutable_parts(element.element, child)
    elif isinstance(element, Node):
        if not isinstance(value, tuple):
            yield value
        for child, inner in zip(element.children, _held(value)):
            yield from mutable_parts(child, inner)


def _held(value: Any) -> tuple[Any, ...]:
    """What is in an element whose structure has parts; nothing where that is out of date."""
    parts = element_parts(value)
    return () if parts is None else tuple(parts.children)


def inner_spreads(element: Element, value: Any) -> Iterator[StagedSpread]:
    """What stands, in the lists in an element, for elements that the user could change in place."""
    if isinstance(element, Inner) and element.element is not None:
        for child in value:
            if type(child) is not StagedSpread:
                yield from inner_spreads(element.element, child)
            elif is_mutable(child.element):
                yield child
    elif isinstance(element, Node):
        for child, inner in zip(element.children, _held(value)):
            yield from inner_spreads(child, inner)


def is_mutable(element: Element | None) -> bool:
    """Whether elements of a structure are, or hold, what the user could change in place."""
    if isinstance(element, Node):
        return not issubclass(element.parts.type, (tuple, complex)) or any(map(is_mutable, element.children))
    return isinstance(element, Inner) and (element.kind is list or is_mutable(element.element))


def kept_parts(element: Element | None) -> Iterator[Any]:
    """The objects that elements of a structure hold as they are."""
    if isinstance(element, Node):
        for child in element.children:
            yield from kept_parts(child)
    elif isinstance(element, Inner):
        yield from kept_parts(element.element)
    elif isinstance(element, Same):
        yield element.value


def is_outdated(value: Any) -> bool:
    """Whether a value is a list of which another copy has been changed."""
    only = value[0] if isinstance(value, (list, collections.deque)) and len(value) == 1 else None
    return type(only) is StagedSpread and only.is_outdated


def is_plain(element: Element | None) -> bool:
    """Whether the one column of a list is that list: its elements are tensors or numbers, or lists of them."""
    if isinstance(element, Leaf):
        return not isinstance(element.type, TableType)
    return isinstance(element, Inner) and element.kind is list and is_plain(element.element)


def same_structure(left: Element | None, right: Element | None, same_type: Callable[[Type, Type], bool]) -> bool:
    """Whether two structures, one of which covers the other, are the same."""
    mine, others = (leaf_types(element) for element in (left, right))
    alike = len(mine) == len(others) and all(same_type(a, b) for a, b in zip(mine, others))
    return alike and _hold_alike(left, right)


def _hold_alike(left: Element | None, right: Element | None) -> bool:
    """Whether the lists in two structures that are known to be empty are the same: one of numbers has such a column."""
    if isinstance(left, Inner) and isinstance(right, Inner):
        return _hold_alike(left.element, right.element)
    if isinstance(left, Node) and isinstance(right, Node):
        return all(map(_hold_alike, left.children, right.children))
    return (left is None) == (right is None)
