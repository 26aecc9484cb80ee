"""The dictionaries of objects' attributes (``o.__dict__``, ``vars(o)``), written as dictionaries are.

What is written there are attributes: the journal takes it down as such, by comparing, so that there is one kind of
place for an attribute, by whichever way it is written. As contents of a dictionary it would be a second one, and a join
of the two would take what one path has written for what the other has left.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from stillgraph.program.types import JoinFailure
from stillgraph.trace.effects.modules import State
from stillgraph.trace.heap.births import Births
from stillgraph.trace.heap.journal import Journal, Write
from stillgraph.trace.heap.places import tables_of
from stillgraph.trace.sources.sources import Finder


class AttributeDictionaries:
    """Knows whose attributes a dictionary holds, and what has changed in those that were written as dictionaries.

    Args:
        journal: of the capture; it asks here what has changed.
        finder: where objects are found from the call's roots.
        births: tells what the capture has made.
    """

    def __init__(self, journal: Journal, finder: Finder, births: Births) -> None:
        self._journal = journal
        self._finder = finder
        self._births = births
        self._shown: dict[int, Callable[[], Any]] = {}  # by the ids of their dictionaries, or their own, what was asked
        self._found: dict[int, Any] = {}  # the same, of all that was found
        self._count = 0  # of what was found by then
        self._written: dict[int, State] = {}  # the objects whose dictionaries were written, as they were last
        journal.watches.append(self)

    def shown(self, value: Any) -> None:
        """Told that code gets hold of the dictionary of an object, or of a view of a class's."""
        if isinstance(value, type):
            self._shown[id(value)] = _weakly(value)
        for own in _dictionaries_of(value):
            self._shown[id(own)] = _weakly(value)

    def require_not_shown(self, value: Any) -> None:
        """Refuse where code has got hold of the dictionary of an object, or finds it by a path of its own.

        Raises:
            JoinFailure: it has: it finds there what the object has, and is told of no attribute.
        """
        held = _dictionaries_of(value)
        found = any(id(own) in self._shown or self._finder.find(own) is not None for own in held)
        if found or id(value) in self._shown:
            message = "an attribute is made or deleted on one path only, of an object whose __dict__ is looked at"
            raise JoinFailure("SG204", message)

    def owner_of(self, target: Any) -> Any:
        """The object whose attributes a dictionary holds, if what is written to it can be followed; else None."""
        if type(target) is not dict:
            return None
        owner = self._shown.get(id(target), _nobody)()
        if owner is None or not _has(owner, target):
            owner = self._owner_found(target)
        return owner if owner is not None and self._is_followed(owner) else None

    def _owner_found(self, target: Any) -> Any:
        reached = self._finder.reached_since(self._count)
        self._count += len(reached)
        for value in reached:
            for own in _dictionaries_of(value):
                self._found[id(own)] = value
        owner = self._found.get(id(target))
        return owner if owner is not None and _has(owner, target) else None

    def _is_followed(self, owner: Any) -> bool:
        if self.is_noted(owner) or self._finder.find(owner) is not None:
            return True
        return self._births.is_new(owner) is True

    def note(self, owner: Any) -> None:
        """To be called before the dictionary of an object is written."""
        self._journal.look()
        self._written.setdefault(id(owner), State(owner))

    def is_noted(self, owner: Any) -> bool:
        """Whether the dictionary of an object was written."""
        return id(owner) in self._written

    def changes(self) -> list[Write]:
        """As `journal.Watch.changes`."""
        found = []
        for key, before in self._written.items():
            if not before.is_current():
                self._written[key] = State(before.owner)
                # One that is no name is an attribute of nothing; `ModuleTables` refuses a dictionary left with such.
                found += [write for write in before.writes() if isinstance(getattr(write.place, "name", None), str)]
        return found

    def forget(self) -> None:
        """Let go of the user's objects: a capture that has ended lives until Python looks for cycles."""
        held: Any
        for held in (self._shown, self._found, self._written):
            held.clear()


def _dictionaries_of(value: Any) -> list[dict[str, Any]]:
    """The dictionaries of an object's attributes, a module's tables too; a module of Python's has variables."""
    if isinstance(value, ModuleType):
        return []
    return [own for own in tables_of(value) if type(own) is dict and own is not value]


def _has(owner: Any, target: dict[str, Any]) -> bool:
    return any(own is target for own in _dictionaries_of(owner))


def _weakly(value: Any) -> Callable[[], Any]:
    """Gives an object as long as the code has it; for good, if it takes no weak references."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _nobody() -> None:
    return None
