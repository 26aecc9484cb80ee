"""What happens to modules and objects behind the journal's back: torch's own methods write their tables directly."""

from __future__ import annotations

import collections
import functools
import operator
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.core.lookup import class_member, own_attributes, slots
from stillgraph.program.facts.module_tables import MODULE_INTERNALS, MODULE_TABLES, NOT_PERSISTENT
from stillgraph.program.sources import Source
from stillgraph.trace.code.names import names_of
from stillgraph.trace.code.namespaces import variable
from stillgraph.trace.control_flow.joined.leaves import same_constant
from stillgraph.trace.effects.shared_state import of_class, of_code
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.heap.contents import copy_contents, replace_contents
from stillgraph.trace.heap.journal import Write
from stillgraph.trace.heap.places import MISSING, AttributePlace, PersistencePlace, TablePlace
from stillgraph.trace.sources.sources import BUILT_IN
from stillgraph.trace.values.containers import holds_staged

_CONTAINERS = (list, dict, set, collections.deque)
_NO_STATE = (torch.nn.Module, torch.Tensor, type, ModuleType, MethodType, functools.partial)


@dataclass(frozen=True)
class Change:
    """An attribute that is not what it was, or a container: whose, which, and what it is now."""

    owner: Any
    name: str
    now: Any
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"{type(self.owner).__name__}.{self.name}"


class ModuleTables:
    """Every module, plain object, container and class that a call reaches, as it was before the capture.

    Args:
        found: them, with their paths.
        log: the writes that the journal knows of so far.
    """

    def __init__(self, found: list[tuple[Any, Source]], log: Sequence[Write] = ()) -> None:
        self._log = log
        self._modules = [value for value, _ in found if isinstance(value, torch.nn.Module)]
        objects = [value for value, _ in found if type(value) not in BUILT_IN and not isinstance(value, _NO_STATE)]
        self._objects = [value for value in objects if type(own_attributes(value)) is dict]
        names = {kind: slots(kind) for kind in {type(value) for value in objects}}
        self._slots = [_Slots(value, names[type(value)]) for value in objects if names[type(value)]]
        self._shared = [state for value, _ in found if (state := of_class(value, log)) is not None]
        self._before = {id(owner): State(owner) for owner in (*self._modules, *self._objects)}
        self._now: dict[int, State] | None = None
        self._containers = [(v, copy_contents(v), source) for v, source in found if isinstance(v, _CONTAINERS)]

    def add(self, value: Any, source: Source) -> None:
        """Another one is found that the call reaches; nothing has been written to it so far."""
        more = ModuleTables([(value, source)], self._log)
        self._modules += more._modules
        self._objects += more._objects
        self._slots += more._slots
        self._shared += more._shared
        self._before |= more._before
        if self._now is not None:
            self._now |= more._before
        self._containers += more._containers

    def forget(self) -> None:
        """Let go of the user's objects: a capture that has ended lives until Python looks for cycles."""
        held: Any
        for held in (self._modules, self._objects, self._slots, self._shared, self._before, self._containers):
            held.clear()
        self._now, self._log = None, ()

    def add_code(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Code is about to run that is not rewritten, and may assign variables of its module."""
        state = of_code(code, namespace, self._log)
        if state is not None:
            self._shared.append(state)

    def add_package(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Code of an installed package is about to run as it is, and may change what its module has."""
        self.add_code(code, namespace)
        known = {id(value) for value, *_ in self._containers}
        for name in sorted(names_of(code).variables):
            value = namespace.get(name)
            if isinstance(value, _CONTAINERS) and id(value) not in known:
                self._containers.append((value, copy_contents(value), variable(namespace, name)))

    def restore(self, keep_added: bool = False, keep_entries: bool = True) -> Change | None:
        """Put everything back; something that had been changed, if anything had.

        Args:
            keep_added: let stay what an object or dict has computed and kept, as ``functools.cached_property`` does, if
                it is not staged. It belongs to what is put back from then on.
            keep_entries: of dicts as well; of what libraries keep by weak references, and enumerations, always.
        """
        changed = None
        kept: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        for module in self._modules:
            changed = self._before[id(module)].restore() or changed
        for value in self._objects:
            before = self._before[id(value)]
            if keep_added:
                kept.append((before.attributes, _added(own_attributes(value), before.attributes, type(value))))
                before.attributes.update(kept[-1][1])
            found = before.restore()
            changed = (None if _is_mode(value) else found) or changed
        for held in self._slots:
            changed = held.restore() or changed
        for shared in self._shared:
            place = shared.restore()
            if place is not None:
                changed = changed or Change(shared, place.name, place.get(), f"'{place}'")
        for value, contents, source in self._containers:
            now = copy_contents(value)
            if keep_added and isinstance(value, dict) and (keep_entries or _is_weak(now) or _is_of_members(source)):
                kept.append((contents, _added(now, contents)))
                contents.update(kept[-1][1])
            if not _same(now, contents):
                replace_contents(value, contents)
                changed = changed or Change(value, "", value, f"the {type(value).__name__} {source}")
        if changed is not None:  # there is no program of this attempt
            for table, added in kept:
                for key in added:
                    del table[key]
        return changed

    def changes(self) -> list[Write]:
        """As `journal.Watch.changes`."""
        if self._now is None:
            self._now = dict(self._before)
        found = []
        for owner in (*self._modules, *self._objects):
            before = self._now[id(owner)]
            if not before.is_current():
                self._now[id(owner)] = State(owner)
                found += before.writes()
        found += [write for held in self._slots for write in held.changes()]
        return [*found, *(write for shared in self._shared for write in shared.changes())]


class State:
    """What one module or object had at a time."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.attributes: dict[str, Any] = dict(own_attributes(owner))
        internal = MODULE_INTERNALS if isinstance(owner, torch.nn.Module) else ()
        held = [(name, self.attributes[name]) for name in internal if name in self.attributes]
        self.tables = {name: copy_contents(table) for name, table in held if isinstance(table, (dict, set))}

    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        own = own_attributes(self.owner)
        return _same(own, self.attributes) and all(_same(own[name], table) for name, table in self.tables.items())

    def restore(self, keep: dict[str, Any] | None = None) -> Change | None:
        """Put everything back, ``keep`` besides; an attribute that had been changed, if one had."""
        own = own_attributes(self.owner)
        changed = None
        for name, table in self.tables.items():
            entries = self.attributes[name]
            if not _same(entries, table):
                changed = self._difference(name, entries, table) or changed
                replace_contents(entries, table)
        attributes = {**self.attributes, **(keep or {})}
        if not _same(own, attributes):
            changed = self._difference("", own, attributes) or changed
            own.clear()
            own.update(attributes)
        return changed

    def _difference(self, table: str, now: Any, before: Any) -> Change | None:
        if isinstance(before, set):
            return Change(self.owner, table, now) if now != before else None
        for name in {**now, **before}:
            if name not in now or name not in before or not same_constant(now[name], before[name]):
                shown = name if table in ("", *MODULE_TABLES) else table  # a hook has a number for a name
                return Change(self.owner, shown, now.get(name, MISSING))
        return None

    def writes(self) -> list[Write]:
        """The attributes that have changed since, as writes of the journal."""
        tables = ["__dict__", *(name for name in MODULE_TABLES if name in self.tables)]
        before = {"__dict__": self.attributes, **self.tables}
        own = own_attributes(self.owner)
        now = {name: own if name == "__dict__" else own[name] for name in tables}
        found = []
        for name in {name: None for each in (before, now) for table in tables for name in each[table]}:
            held, holds = _find(before, tables, name), _find(now, tables, name)
            kept_by_torch = name in MODULE_INTERNALS and name != "training"
            if not kept_by_torch and (held[0] != holds[0] or held[1] is not holds[1]):
                is_module = isinstance(self.owner, torch.nn.Module)
                found.append(Write(self._place(name, holds[0]), held[1], held[0] if is_module else None))
        return [*found, *self._persistence(now)]

    def _persistence(self, now: Mapping[str, Any]) -> Iterator[Write]:
        """The buffers that have become persistent, or no longer are, as writes of the journal."""
        before, after = self.tables.get(NOT_PERSISTENT, set()), own_attributes(self.owner).get(NOT_PERSISTENT, set())
        for name in before ^ after:
            yield Write(PersistencePlace(self.owner, name), name not in before)

    def _place(self, name: str, table: str | None) -> AttributePlace:
        if table is None or not isinstance(self.owner, torch.nn.Module):
            return AttributePlace(self.owner, name)
        return TablePlace(self.owner, name, table)


class _Slots:
    """What an object had in the slots of its class at a time."""

    def __init__(self, owner: Any, names: list[str]) -> None:
        self._owner = owner
        self._places = [AttributePlace(owner, name) for name in names]
        self._before = self._now = [place.get() for place in self._places]

    def restore(self) -> Change | None:
        """Put everything back; an attribute that had been changed, if one had."""
        changed = None
        for place, before in zip(self._places, self._before):
            now = place.get()
            if not same_constant(now, before):
                changed = changed or Change(self._owner, place.name, now)
            if now is not before:
                place.set(before)
        return changed

    def changes(self) -> list[Write]:
        """As `ModuleTables.changes`."""
        before, self._now = self._now, [place.get() for place in self._places]
        pairs = zip(self._places, before, self._now)
        return [Write(place, old) for place, old, new in pairs if old is not new]


def _find(tables: dict[str, Any], order: list[str], name: str) -> tuple[str | None, Any]:
    """In which table a name stands, and for what."""
    return next(((table, tables[table][name]) for table in order if name in tables[table]), (None, MISSING))


def _same(now: Any, before: Any) -> bool:
    """Whether two tables have the same names, in the same order, for the same objects."""
    if isinstance(now, set):
        return now.symmetric_difference(before) == set()
    if isinstance(now, dict):
        return [*now] == [*before] and all(now[name] is value for name, value in before.items())
    return len(now) == len(before) and all(map(operator.is_, now, before))


def _added(now: dict[Any, Any], before: dict[Any, Any], kind: type = object) -> dict[Any, Any]:
    """What has been computed and kept; what hides a value that the class has for all its objects is a change."""
    added = {key: value for key, value in now.items() if key not in before and not holds_staged(value)}
    return {key: value for key, value in added.items() if kind is object or not _hides(kind, key)}


def _is_of_members(source: Source) -> bool:
    """Whether an enumeration keeps its members in a dict, by value: one of several flags from when it is asked for."""
    return getattr(source, "key", None) == "_value2member_map_"


def _is_weak(entries: dict[Any, Any]) -> bool:
    return all(isinstance(key, weakref.ref) for key in entries)


def _hides(kind: type, name: Any) -> bool:
    member = class_member(kind, name)
    return member is not None and not hasattr(type(member), "__get__")


def _is_mode(value: Any) -> bool:
    """Whether an object is a context manager of torch's: between two uses it keeps nothing of interest."""
    return hasattr(type(value), "__enter__") and str(type(value).__module__).startswith("torch.")


def global_hooks() -> dict[str, dict[Any, Any]]:
    """The tables of the hooks that torch runs for every module, by name."""
    kinds = ("forward", "forward_pre", "backward", "backward_pre")
    return {f"_global_{kind}_hooks": getattr(torch.nn.modules.module, f"_global_{kind}_hooks") for kind in kinds}


def makes_modules(value: Any) -> bool:
    """Whether a value is a module, or a parameter that the capture made."""
    return isinstance(value, torch.nn.Module) or (isinstance(value, torch.nn.Parameter) and is_fake(value))
