"""What elements of lists of unknown length have in them: what the user could change, and what stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stillgraph.trace.values.lists import Element, Inner, Node, Same, StagedSpread, parts_of


def mutable_parts(element: Element, value: Any) -> Iterator[Any]:
    """The objects in an element that the user could change in place: a list of unknown length has only their values."""
    if isinstance(element, Inner):
        yield value
        if element.element is not None:
            for child in value:
                if type(child) is not StagedSpread:
                    yield from mutable_parts(element.element, child)
    elif isinstance(element, Node):
        if not isinstance(value, tuple):
            yield value
        for child, inner in zip(element.children, parts_of(value).children):
            yield from mutable_parts(child, inner)


def is_mutable(element: Element | None) -> bool:
    """Whether elements of a structure are, or hold, what the user could change in place."""
    if isinstance(element, Node):
        return not issubclass(element.parts.type, (tuple, complex)) or any(map(is_mutable, element.children))
    return isinstance(element, Inner)


def kept_parts(element: Element | None) -> Iterator[Any]:
    """The objects that elements of a structure hold as they are."""
    if isinstance(element, Node):
        for child in element.children:
            yield from kept_parts(child)
    elif isinstance(element, Inner):
        yield from kept_parts(element.element)
    elif isinstance(element, Same):
        yield element.value
