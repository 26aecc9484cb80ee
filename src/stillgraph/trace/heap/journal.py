"""The journal of heap writes: what a capture did to Python objects, so that it can be undone and joined.

A *place* is a heap location: an attribute, an entry of a dict, the contents of a container, a closure cell. Every write
in rewritten code goes through the journal, which remembers what was there before.
"""

from __future__ import annotations

import collections
import inspect
import itertools
import operator
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from types import MemberDescriptorType
from typing import Any, Protocol

import torch

from stillgraph.core.contents import replace_deque, replace_dict, replace_set
from stillgraph.core.lookup import class_member, is_slot, own_attributes, slot_value
from stillgraph.program.facts.info import info
from stillgraph.program.facts.module_tables import (
    MODULE_TABLES,
    NOT_PERSISTENT,
    entries,
    is_persistent,
    past_class,
    put_in_table,
    set_persistence,
    table_of,
)


class _Missing:
    def __repr__(self) -> str:
        return "<nothing>"


MISSING = _Missing()


births = itertools.count()
"""Tells which of two came first: a `Variable`, or an arm."""


class Place(Protocol):
    """A heap location."""

    @property
    def key(self) -> Hashable: ...

    def get(self) -> Any:
        """What is there, or `MISSING`."""

    def set(self, value: Any) -> None:
        """Put ``value`` there; `MISSING` removes what is there."""


@dataclass(frozen=True, eq=False)
class AttributePlace:
    """``target.name``, as stored by the instance itself."""

    target: Any
    name: str

    @property
    def key(self) -> Hashable:
        return ("attribute", id(self.target), self.name)

    @property
    def table(self) -> str | None:
        """In which of its tables a module has the attribute (see `table_of`)."""
        return table_of(self.target, self.name) if isinstance(self.target, torch.nn.Module) else None

    def get(self) -> Any:
        for table in tables_of(self.target):
            if self.name in table:
                return table[self.name]
        described = inspect.getattr_static(type(self.target), self.name, None)
        if isinstance(described, MemberDescriptorType):
            return slot_value(self.target, self.name, MISSING)
        if self._is_described():
            return getattr(self.target, self.name, MISSING)
        return MISSING

    def set(self, value: Any) -> None:
        """As if assigned, but past a ``__setattr__`` of the user's, which runs when the user's code asks for it."""
        if value is MISSING:
            self._remove()
        elif isinstance(self.target, torch.nn.Module):
            held = entries(self.target, "_parameters")
            if self.name in held and info(value).parameters:
                held[self.name] = value  # joined of parameters, which torch does not see
            else:
                torch.nn.Module.__setattr__(self.target, self.name, value)
        elif self._is_plain():
            self.target.__dict__[self.name] = value
        else:
            past_class(self.target, "__setattr__")(self.target, self.name, value)

    def _remove(self) -> None:
        if isinstance(self.target, torch.nn.Module):
            for table in tables_of(self.target):
                table.pop(self.name, None)
        elif self._is_plain():
            self.target.__dict__.pop(self.name, None)
        elif self.get() is not MISSING:
            past_class(self.target, "__delattr__")(self.target, self.name)

    @property
    def is_computed(self) -> bool:
        """Whether looking at it runs code of the user's."""
        return self._is_described() and not isinstance(
            inspect.getattr_static(type(self.target), self.name, None), MemberDescriptorType
        )

    @property
    def default(self) -> Any:
        """What the class has by the name, as it stands there: Python finds it where the object has nothing."""
        found = (vars(base)[self.name] for base in type(self.target).__mro__ if self.name in vars(base))
        member = next(found, MISSING)
        return MISSING if isinstance(member, MemberDescriptorType) else member

    @property
    def is_plainly_found(self) -> bool:
        """Whether Python looks for it in the object and then in its class, and computes nothing."""
        kind = type(self.target)
        is_module = isinstance(self.target, torch.nn.Module)
        asks = class_member(kind, "__getattr__") in (None, *([torch.nn.Module.__getattr__] if is_module else []))
        is_usual = is_slot(class_member(kind, "__getattribute__"), "__getattribute__") and not self.is_computed
        return asks and is_usual and not isinstance(self.target, type) and not hasattr(self.default, "__get__")

    def _is_plain(self) -> bool:
        return not self._is_described() and isinstance(own_attributes(self.target), dict)

    def _is_described(self) -> bool:
        """Whether a descriptor of the class says what is stored; asked of the class it may give another object."""
        return hasattr(inspect.getattr_static(type(self.target), self.name, None), "__set__")

    def __str__(self) -> str:
        owner = self.target if isinstance(self.target, type) else type(self.target)
        return f"{owner.__name__}.{self.name}"


def tables_of(target: Any) -> Iterator[Any]:
    """The dictionaries in which an object keeps its attributes."""
    own = own_attributes(target)
    own = {} if own is None else own  # an empty one is the object's, too
    yield own
    if isinstance(target, torch.nn.Module):
        yield from (own[name] for name in MODULE_TABLES if name in own)


@dataclass(frozen=True, eq=False)
class TablePlace(AttributePlace):
    """An attribute that torch has put into just this table of a module's, as ``register_buffer`` does."""

    where: str

    def set(self, value: Any) -> None:
        if value is MISSING:
            super().set(value)
        else:
            put_in_table(self.target, self.where, self.name, value)


@dataclass(frozen=True, eq=False)
class AssignedPlace(TablePlace):
    """An attribute of which only the run knows in which table of the module it is: where an assignment puts it then.

    During the capture it lies in ``__dict__``.
    """

    where: str = "__dict__"


class _PerhapsPersistent(str):
    """The name of a buffer among those that are not persistent, where only the run knows whether it is one."""

    persistent: Any


@dataclass(frozen=True, eq=False)
class PersistencePlace:
    """Whether ``state_dict`` has a buffer of a module's; True for what is no buffer, as torch has it."""

    target: torch.nn.Module
    name: str

    @property
    def key(self) -> Hashable:
        return ("persistence", id(self.target), self.name)

    def get(self) -> Any:
        held = next((each for each in self.target.__dict__[NOT_PERSISTENT] if each == self.name), None)
        return held.persistent if isinstance(held, _PerhapsPersistent) else held is None

    def set(self, value: Any) -> None:
        set_persistence(self.target, self.name, True)
        if value is False:
            set_persistence(self.target, self.name, False)
        elif value is not True:
            name = _PerhapsPersistent(self.name)
            name.persistent = value
            self.target.__dict__[NOT_PERSISTENT].add(name)

    def __str__(self) -> str:
        return f"{type(self.target).__name__}.{self.name}, persistent"


@dataclass(frozen=True, eq=False)
class GlobalPlace:
    """A module-level name."""

    namespace: dict[str, Any]
    name: str

    @property
    def key(self) -> Hashable:
        return ("global", id(self.namespace), self.name)

    def get(self) -> Any:
        return self.namespace.get(self.name, MISSING)

    def set(self, value: Any) -> None:
        if value is MISSING:
            self.namespace.pop(self.name, None)
        else:
            self.namespace[self.name] = value

    def __str__(self) -> str:
        return f"global {self.name}"


@dataclass(frozen=True, eq=False)
class CellPlace:
    """A variable shared by closures: a local of a rewritten function, or a ``nonlocal`` of the captured one."""

    cell: Any
    name: str

    @property
    def key(self) -> Hashable:
        return ("cell", id(self.cell))

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def set(self, value: Any) -> None:
        if value is MISSING:
            try:
                del self.cell.cell_contents
            except ValueError:
                pass
        else:
            self.cell.cell_contents = value

    def __str__(self) -> str:
        return self.name


class PassingPlace(CellPlace):
    """A place that is only looked at on the paths that have put something there."""


class VariablePlace(CellPlace):
    """A variable of a block that a generator runs: it belongs to a function further out than the generator's arms."""

    born: int

    def __init__(self, cell: Any, name: str) -> None:
        super().__init__(cell, name)
        object.__setattr__(self, "born", next(births))


class PassingVariablePlace(VariablePlace, PassingPlace):
    """One that is only looked at on the paths that have put something there."""


def of_a_block(place: CellPlace) -> VariablePlace:
    """A variable of a block that a generator is about to run, seen from within the generator."""
    kind = PassingVariablePlace if isinstance(place, PassingPlace) else VariablePlace
    return kind(place.cell, place.name)


@dataclass(frozen=True, eq=False)
class ContentsPlace:
    """The whole contents of a list, dict, set or deque."""

    target: Any

    @property
    def key(self) -> Hashable:
        return ("contents", id(self.target))

    def get(self) -> Any:
        return copy_contents(self.target)

    def set(self, value: Any) -> None:
        replace_contents(self.target, value)

    def __str__(self) -> str:
        return f"a {type(self.target).__name__}"


class Variable:
    """A variable that an operator keeps to itself (the index of a loop, say), carried like one of the user's."""

    def __init__(self, name: str, value: Any) -> None:
        self.born = next(births)
        self.key = (name, self.born)
        self.name = name
        self.value = value

    def get(self) -> Any:
        return self.value

    def set(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return self.name


def is_same(now: Any, before: Any) -> bool:
    """Whether a place holds the very same, or a container of the same."""
    if type(now) is not type(before) or not isinstance(now, (dict, list)):
        return now is before
    mine, others = [*now], [*before]
    if isinstance(now, dict):
        mine, others = [*mine, *now.values()], [*others, *before.values()]
    return len(mine) == len(others) and all(map(operator.is_, mine, others))


def copy_contents(container: Any) -> Any:
    """A plain copy of what a container holds, whatever methods a class of the user's has to look into it."""
    kind = kind_of_container(container)
    if isinstance(container, dict):
        return dict(kind.items(container))
    return (set if kind is set else list)(kind.__iter__(container))


def replace_contents(container: Any, contents: Any) -> None:
    """Make ``container`` hold just ``contents``, in place and past the methods of a class of the user's."""
    kind: Any = kind_of_container(container)
    if kind is set:
        replace_set(kind, container, contents)
    elif isinstance(container, dict):
        replace_dict(kind, container, contents)
    elif kind is list:
        list.__setitem__(container, slice(None), contents)
    else:
        replace_deque(kind, container, contents)


def kind_of_container(container: Any) -> Any:
    """Python's class whose methods are a container's own, whatever a class of the user's makes of them."""
    if id(type(container)) in _KIND_IDS:
        return type(container)
    return next(kind for kind in _KINDS if isinstance(container, kind))


_KINDS = (collections.OrderedDict, dict, list, set, collections.deque)
_KIND_IDS = frozenset(map(id, _KINDS))  # a metaclass may say what its classes are equal to, so none is asked


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
