"""The journal of heap writes: what a capture did to Python objects, so that it can be undone and joined.

A *place* is a heap location: an attribute, an entry of a dict, the contents of a container, a closure cell. Every write
in rewritten code goes through the journal, which remembers what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from stillgraph.program.facts.module_tables import is_persistent, put_in_table
from stillgraph.trace.heap.contents import is_same
from stillgraph.trace.heap.places import AssignedPlace, AttributePlace, PersistencePlace, Place, TablePlace


@dataclass(frozen=True)
class Write:
    """One place that was written, and what it held before; for an attribute of a module, in which of its tables."""

    place: Place
    before: Any
    table: str | None = None

    def undo(self) -> None:
        """Put back what was there."""
        if self.table is not None and isinstance(self.place, AttributePlace):
            put_in_table(self.place.target, self.table, self.place.name, self.before)
        else:
            self.place.set(self.before)


def _as_left(place: Place) -> Place:
    """A place such that what is put there goes where it is now: an attribute of a module into the table that has it."""
    if isinstance(place, AttributePlace) and place.table is not None and not isinstance(place, AssignedPlace):
        return TablePlace(place.target, place.name, place.table)
    return place


class Watch(Protocol):
    """Finds out what was written without the journal's knowledge."""

    def changes(self) -> list[Write]:
        """Every such write since the last time this was asked."""


@dataclass(frozen=True)
class Midway:
    """What the program has written before its end, by the keys of the places.

    Attributes:
        settled: all of that; on some path only, maybe.
        left: what is not written once more at the end, unless the code writes something else.
    """

    settled: dict[Hashable, Any] = field(default_factory=dict)
    left: dict[Hashable, Any] = field(default_factory=dict)

    def copy(self) -> Midway:
        """The same, apart."""
        return Midway(dict(self.settled), dict(self.left))


class Journal:
    """A log of writes; nested arms take marks and roll back to them.

    Attributes:
        before: told of each place before it is written, and whether it is certain that it will be.
        watches: what finds out what was written without its knowledge.
    """

    before: Callable[[Place, bool], None] | None = None

    def __init__(self) -> None:
        self._log: list[Write] = []
        self._inputs: dict[Hashable, Any] = {}  # what was put in places for the program's inputs, before any code ran
        self.midway = Midway()
        self.watches: list[Watch] = []
        self.version = 0  # grows with whatever may change what was written

    @property
    def log(self) -> list[Write]:
        """The writes so far."""
        return self._log

    def note(self, place: Place, certain: bool = True) -> None:
        """To be called before ``place`` is written, or may be, if that is not ``certain``."""
        if self.before is not None:
            self.before(place, certain)
        self.look()
        self.version += 1
        table = place.table if isinstance(place, AttributePlace) else None
        self._log.append(Write(place, place.get(), table))
        if isinstance(place, AttributePlace) and table == "_buffers" and not is_persistent(place.target, place.name):
            self.note(PersistencePlace(place.target, place.name))  # torch forgets that with the buffer

    def look(self) -> None:
        """Take down what was written without the journal's knowledge."""
        changes = self._unseen()
        self.version += len(changes)
        self._log.extend(changes)

    def _unseen(self) -> list[Write]:
        return [write for watch in self.watches for write in watch.changes()]

    def write(self, place: Place, value: Any) -> None:
        """Write ``value`` to ``place``."""
        self.note(place)
        place.set(value)

    @property
    def mark(self) -> int:
        """A point to roll back to."""
        self.look()
        return len(self._log)

    def rollback(self, mark: int, undoes: Callable[[Place], bool] = lambda place: True) -> None:
        """Undo the writes since ``mark``, latest first; those to places that ``undoes`` denies are forgotten."""
        self.look()
        self.version += 1
        while len(self._log) > mark:
            write = self._log.pop()
            if undoes(write.place):
                write.undo()
        self._unseen()  # that of undoing

    def written(self, mark: int) -> dict[Hashable, Write]:
        """The places written since ``mark``, each with what it held at the mark."""
        self.look()
        first: dict[Hashable, Write] = {}
        for write in self._log[mark:]:
            first.setdefault(write.place.key, write)
        return first

    def is_assigned(self, place: Place) -> bool:
        """Whether only the run knows in which table of a module an attribute is."""
        last = next((write.place for write in reversed(self._log) if write.place.key == place.key), None)
        return isinstance(last, AssignedPlace)

    def begin(self) -> None:
        """What was written so far are the program's inputs, put where the code will read them."""
        self._inputs = {key: write.place.get() for key, write in self.written(0).items()}

    def is_input(self, place: Place) -> bool:
        """Whether what a place held when the code began is an input of the program, and so another in each call."""
        return place.key in self._inputs

    def outcome(self) -> list[Write]:
        """The places that the code has written, each with what it held before the capture.

        Code that is not rewritten writes past the journal; but where it may find an input, another value shows it.
        """
        return [write for key, write in self.written(0).items() if self._counts(key, write.place.get())]

    def _counts(self, key: Hashable, now: Any) -> bool:
        """Whether a place that was written has to be written by the program."""
        if key in self.midway.left:
            return not is_same(now, self.midway.left[key])
        return key in self.midway.settled or key not in self._inputs or not is_same(now, self._inputs[key])

    def take_up(self, place: Place) -> None:
        """What is written to a place from now on counts again, whatever it is."""
        self.version += 1
        self.midway.left.pop(place.key, None)

    def settle(self, place: Place, certain: bool) -> None:
        """Told that the program writes a place midway; once is enough if that is ``certain``, not on one path only."""
        self.version += 1
        self.midway.settled[place.key] = place.get()
        if certain:
            self.midway.left[place.key] = place.get()
        else:
            self.take_up(place)

    def rewind(self, mark: int) -> dict[Hashable, tuple[Place, Any]]:
        """Undo the writes since ``mark``; each place that was written, with what it held until now."""
        first = self.written(mark)
        tables = {w.place.key: w.place for w in self._log[mark:] if isinstance(w.place, AttributePlace)}
        held = {key: (_as_left(tables.get(key, w.place)), w.place.get()) for key, w in first.items()}
        self.rollback(mark)
        return held
