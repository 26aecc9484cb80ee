"""Guards on what containers hold."""

from __future__ import annotations

import array
import collections
import copy
import io
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, MappingProxyType
from typing import Any

from stillgraph.core.lookup import behind_view, is_exactly, own_attributes
from stillgraph.program.guards import BehindGuard, ContentsGuard, KeysGuard, LengthGuard, MissingGuard, TypeGuard
from stillgraph.program.sources import INNER, Attribute, Called, Element, Global, Item, Source, Upcoming, item_of
from stillgraph.trace.guards.buffers import BUFFERS, READING, buffer_refused
from stillgraph.trace.guards.collector import CONTAINERS, PLAIN, Collector, step_name
from stillgraph.trace.sources.kinds_of_objects import STEPS

_FEW = 8  # contents guarded one by one, so that a miss names the one that differs
_COPIED = frozenset({dict, collections.OrderedDict, collections.defaultdict, collections.Counter})
"""Mappings whose copies are of the same type, and made by C code."""


@dataclass
class ContainerGuards(Collector):
    """What the code reads of containers."""

    def _contents(self, value: Any, source: Source) -> None:
        """What a container holds; nothing for anything else."""
        found = None if isinstance(value, tuple) else self.finder.find(value)  # inputs are put into one path's tuple
        place = found or source
        if place in self.promoted:
            return
        if self._is_only_moved(value, source):
            self._add(TypeGuard(source, type(value)))
        elif place in self.partly:
            self._entries(value, source, place)
        elif isinstance(value, (dict, MappingProxyType)):
            self._mapping(value, source, place)
        elif isinstance(value, (set, frozenset)):
            self._add(TypeGuard(source, type(value)))
            self._add(KeysGuard(source, tuple(value)))
            if not self._is_only_asked(value):
                self._members(value, source)
        elif isinstance(value, BUFFERS) and not (isinstance(value, io.IOBase) and self.own.isdisjoint(READING)):
            raise buffer_refused(value, source)
        elif isinstance(value, (bytearray, array.array)):
            self._add(ContentsGuard(source, copy.copy(value)))
        elif isinstance(value, (list, tuple, collections.deque)):
            if isinstance(value, collections.deque):
                self._value(Attribute(source, "maxlen"), value.maxlen)
            if self._is_compared(value, source, place) and is_plain(value):
                self._add(ContentsGuard(source, value if isinstance(value, tuple) else copy.copy(value)))
                return
            self._add(TypeGuard(source, type(value)))
            self._add(LengthGuard(source, len(value)))
            self._elements(value, source, place, enumerate(value))

    def _is_only_moved(self, value: Any, source: Source) -> bool:
        """Whether the code comes to a container by name, but does not look into it."""
        into = (self.reads.looked_into, self.reads.whole, self.reads.picked)
        if id(value) not in self.reads.met or any(id(value) in each for each in into):
            return False
        return ("contents", id(value)) not in self.written and getattr(source, "name", None) not in self.not_followed

    def _entries(self, value: Any, source: Source, place: Source) -> None:
        """What the code comes to of a container, where that is all that it does with it."""
        self._add(TypeGuard(source, type(value)))
        keys = self.partly[place]
        there = [key for key in keys if isinstance(value, list) or key in value]
        self._elements(value, source, place, ((key, value[key]) for key in there))
        lacking = keys.keys() - there
        if lacking:
            self._add(MissingGuard(source, tuple(key for key in keys if key in lacking)))

    def _read_in_part(self) -> dict[Source, dict[Any, None]]:
        """Where the containers are of which the code comes to single entries and does nothing else, and their keys."""
        keys: dict[int, dict[Any, None]] = {key: {} for key in self.reads.met}  # of those that are but moved
        keys.update((key, picked) for key, (_, picked) in self.reads.picked.items())
        values = [*self.reads.met.values(), *(value for value, _ in self.reads.picked.values())]
        places = {id(value): self.finder.find(value) for value in values if ("contents", id(value)) not in self.changed}
        found = {key: place for key, place in places.items() if place is not None}
        others: dict[int, list[Source]] = {}  # where they and others are found too
        for value, source in self.finder.again:
            others.setdefault(id(value), []).append(source)
        return {place: keys[key] for key, place in found.items() if not self._is_open(place, others)}

    def _is_open(self, place: Source, others: dict[int, list[Source]]) -> bool:
        """Whether code of which not every step was looked at may have come to what is in a container.

        Args:
            place: where the container is.
            others: the further places of objects that are in several, by their ids.
        """
        found: dict[Source, Any] = {}
        new = {place}
        while new:
            way = list(dict.fromkeys(step for each in new for step in _way(each) if step not in found))
            values = self.finder.values_at(way)
            found.update(zip(way, values, strict=True))
            if any(self._is_open_step(step, found) for step in way):
                return True
            new = {source for value in values for source in others.get(id(value), ()) if source not in found}
        return False

    def _is_open_step(self, step: Source, found: dict[Source, Any]) -> bool:
        """As `_is_open`, by one step; `found` is what is there, and in the places on the way."""
        value, name = found[step], step_name(step)
        if name in self.not_followed or isinstance(step, (Called, Element, Upcoming)) or id(value) in self.reads.whole:
            return True
        if isinstance(step, Attribute) and isinstance(found[step.base], (FunctionType, *STEPS)):
            return True  # Python takes it by itself: defaults, what a partial is given
        if isinstance(step, Global) and id(vars(sys.modules[step.module])) in self.reads.spaces:
            return True
        if name == "__dict__" or not isinstance(value, CONTAINERS):
            return id(own_attributes(value)) in self.reads.looked_into
        return not is_exactly(value, (dict, list, set, collections.deque)) or id(value) in self.reads.looked_into

    def _is_only_asked(self, value: Any) -> bool:
        """Whether a set is a global that all code which mentions it only asks what is in it: it comes to no member."""
        source = self.finder.find(value)
        if not isinstance(source, Global) or id(value) in self.finder.twice or id(value) in self.reads.whole:
            return False
        namespace, name = getattr(sys.modules.get(source.module), "__dict__", {}), source.name
        by_name = any(asked == name for _, asked in (*self.reads.attributes, *self.reads.variables))
        listed = id(namespace) in self.reads.spaces or any(
            isinstance(each, types.ModuleType) and vars(each) is namespace for each in self.reads.whole.values()
        )
        return not (by_name or listed or name in self.names.attributes or name in self.taken)

    def _is_passed_over(self, value: Any) -> bool:
        """Whether the code does not come to an object: it is found by members of sets that are only asked."""
        among = self.finder.found_among(value)
        return bool(among) and all(map(self._is_only_asked, among))

    def _mapping(self, value: Any, source: Source, place: Source) -> None:
        behind = behind_view(value)
        if isinstance(value, collections.defaultdict):
            self._value(Attribute(source, "default_factory"), value.default_factory)
        whole = type(behind) in _COPIED and self._is_compared(value, source, place)
        if whole and is_plain((*value, *value.values())):
            self._add(ContentsGuard(source, behind.copy() if behind is value else MappingProxyType(behind.copy())))
            return
        self._add(TypeGuard(source, type(value)))
        if behind is not value:
            self._add(BehindGuard(source, type(behind)))
        self._add(KeysGuard(source, tuple(value)))
        self._members(value, source)
        self._elements(value, source, place, value.items())

    def _members(self, members: Iterable[Any], source: Source) -> None:
        """The elements of a set, or the keys of a mapping: they are known to be the same."""
        for position, member in enumerate(members):
            self._reach(member, Element(source, position))

    def _is_compared(self, value: Any, source: Source, place: Source) -> bool:
        """Whether a container is compared as a whole: it is long, and nothing in it is an input of the program."""
        defaults = isinstance(source, Attribute) and source.name == "__defaults__"
        long = (len(value) > _FEW or (defaults and len(value) > 0)) and not self.reads.values_compared
        return long and not any(isinstance(p, Item) and p.base == place for p in self.promoted)

    def _elements(self, container: Any, source: Source, place: Source, items: Iterable[tuple[Any, Any]]) -> None:
        for key, item in items:
            if item_of(container, place, key) not in self.promoted:
                self._value(item_of(container, source, key), item)


def _way(source: Source) -> Iterator[Source]:
    """A path and all that it begins with, the longest first."""
    yield source
    while isinstance(source, INNER):
        source = source.base
        yield source


def is_plain(items: Iterable[Any]) -> bool:
    return all(type(item) in PLAIN for item in items)
