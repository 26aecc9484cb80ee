"""Which places in the user's objects are one, by whatever path a program comes to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any

from stillgraph.deploy.description.signature import place_key, written_place
from stillgraph.program.effects import DeleteAttribute, Effect, SetItem
from stillgraph.program.sources import INNER, Attribute, Cell, Global, Item, Slot, Source
from stillgraph.runtime.native.function_writer import read_source

Marks = frozenset[Any]


@dataclass(frozen=True)
class Whereabouts:
    """Places of one call. What tells them from others holds as long as the user's objects live.

    Attributes:
        args, kwargs: of the call, a receiver first.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    _known: dict[Source, Marks] = field(default_factory=dict)
    _ways: dict[Source, Marks] = field(default_factory=dict)

    def of(self, source: Source) -> Marks:
        """What a place is known by: places that have any of it in common are one."""
        known = self._known.get(source)
        if known is None:
            known = self._known[source] = frozenset((place_key(source), *self._homes(source)))
        return known

    def of_contents(self, source: Source) -> Marks:
        """As `of`, of all that the container at a place holds."""
        return frozenset(("contents", each) for each in (place_key(source), *self._ids(source)))

    def changed(self, effect: Effect) -> Marks:
        """The place that an effect changes."""
        written = written_place(effect)
        if written is not None:
            return self.of(written)
        if isinstance(effect, DeleteAttribute):
            return self.of(Attribute(effect.target, effect.name))
        if isinstance(effect, SetItem):
            return self.of(Item(effect.target, effect.key))
        return self.of_contents(effect.target)  # type: ignore[union-attr]  # all others have one

    def way(self, source: Source) -> Marks:
        """The places that a path leads through, its end included: what changes one of them may change what it gives."""
        known = self._ways.get(source)
        if known is None:
            known = self._ways[source] = frozenset().union(*self._steps(source))
        return known

    def _steps(self, source: Source) -> Iterator[Marks]:
        yield self.of(source)
        while isinstance(source, INNER):
            source = source.base
            yield self.of(source)
            yield self.of_contents(source)

    def _homes(self, source: Source) -> Iterator[Any]:
        match source:
            case Attribute(base=base, name=name) | Slot(base=base, name=name):
                yield from self._entries(base, name)
            case Item(base=Attribute(base=owner, name="__dict__"), key=key):
                yield from self._entries(owner, key)
            case Item(base=base, key=key):
                yield from (("entry", each, key) for each in self._ids(base))
            case Cell(cell=cell):
                yield ("cell", id(cell))
            case Global(module=module, name=name):
                yield ("entry", id(vars(sys.modules[module])), name)

    def _entries(self, owner: Source, name: Any) -> Iterator[Any]:
        try:
            value = read_source(owner, self.args, self.kwargs)
        except Exception:  # whatever reading raises: it is not there in this call
            return
        yield ("entry", id(vars(value)), name) if isinstance(value, ModuleType) else ("attribute", id(value), name)

    def _ids(self, source: Source) -> Iterator[int]:
        try:
            value = read_source(source, self.args, self.kwargs)
        except Exception:  # as above
            return
        if not isinstance(value, MappingProxyType):  # which is made anew whenever it is read
            yield id(value)
