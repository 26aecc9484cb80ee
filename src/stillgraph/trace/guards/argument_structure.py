"""The structure of arguments: what containers and dataclasses hold, where, and what an input is called for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from stillgraph.core.parcel import is_parcels
from stillgraph.program.facts.values import is_value
from stillgraph.program.sources import (
    Argument,
    Attribute,
    Called,
    Element,
    Item,
    Memory,
    Slot,
    Source,
    Upcoming,
    item_of,
)
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.containers import split


def source_name(source: Source, finder: Finder) -> str:
    """A source as a name for an input: an argument by its parameter, a parameter by its path in the module."""
    if isinstance(source, Argument):
        return finder.names.get(source.key, str(source.key) if isinstance(source.key, str) else f"arg{source.key}")
    if isinstance(source, (Slot, Attribute)):
        base = source_name(source.base, finder)
        if isinstance(source, Attribute) and is_parcels(source.name):
            return base
        return source.name if base == "self" else f"{base}_{source.name}"
    if isinstance(source, (Item, Upcoming)):
        return f"{source_name(source.base, finder)}_{source.key if isinstance(source, Item) else source.position}"
    if isinstance(source, (Called, Element, Memory)):
        return source_name(source.base, finder)
    return source.name


MUTABLE = (list, dict, set, deque)

_CONSTANTS = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device, range, torch.Size)


def is_constant(value: Any) -> bool:
    """Whether a value is compared with ``==``."""
    if isinstance(value, slice):
        return all(map(is_constant, (value.start, value.stop, value.step)))
    return isinstance(value, _CONSTANTS) or is_value(value)


def parts_at(value: Any, source: Source) -> list[tuple[Any, Source]] | None:
    """What a container or dataclass holds, and where; None for anything that is passed on as it is."""
    if isinstance(value, torch.Size) or (parts := split(value)) is None:
        return None
    if isinstance(value, dict):
        return list(zip(parts.children, [item_of(value, source, key) for key in value], strict=True))
    if parts.attributes:
        return list(zip(parts.children, [Attribute(source, name) for name in parts.context], strict=True))
    if isinstance(value, (list, tuple, deque)):
        return [(child, item_of(value, source, index)) for index, child in enumerate(value)]
    return None


def endless(value: Any) -> set[int]:
    """The ids of the containers and dataclasses, in a value, that lead to themselves or to others that do."""
    found: set[int] = set()
    seen: set[int] = set()

    def look(value: Any, above: tuple[int, ...]) -> None:
        key, parts = id(value), None if isinstance(value, torch.Tensor) else split(value)
        if parts is None:
            return
        if key in above or key in found:
            found.update(above)
        elif key not in seen:
            seen.add(key)
            for child in parts.children:
                look(child, (*above, key))

    look(value, ())
    return found


def places_in(value: Any, source: Source) -> Iterator[tuple[Any, Source]]:
    """A value, and everything inside it that could be told from another: tensors, containers, dataclasses."""
    queue, seen = [(value, source)], set()
    while queue:
        value, source = queue.pop()
        children = None if isinstance(value, torch.Tensor) else parts_at(value, source)
        if isinstance(value, (torch.Tensor, *MUTABLE)) or children is not None:
            yield value, source
        if children is not None and id(value) not in seen:
            seen.add(id(value))
            queue += children
