"""Places: the heap locations that a capture writes, such as an attribute, a variable, the contents of a container."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from types import MemberDescriptorType
from typing import Any, Protocol

import torch
from torch.distributions.utils import lazy_property

from stillgraph.core.lookup import class_member, is_slot, own_attributes, slot_value
from stillgraph.program.facts.info import info
from stillgraph.program.facts.module_tables import (
    MODULE_TABLES,
    NOT_PERSISTENT,
    entries,
    is_behind_descriptor,
    past_class,
    put_in_table,
    set_persistence,
    table_of,
)
from stillgraph.trace.heap.contents import copy_contents, replace_contents


class _Missing:
    def __repr__(self) -> str:
        return "<nothing>"


MISSING = _Missing()

COMPUTED_ONCE = (functools.cached_property, lazy_property)
"""Descriptors that compute an attribute which the object has from then on, in its ``__dict__``."""


def variable_of(place: str) -> str:
    """The variable whose value is, or has as an element, what stands in a place, given what messages call that."""
    return place.partition("[")[0]


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


class ReadPlace:
    """A place whose very value code reads: it may hold a lost value, which is refused where it is read."""


@dataclass(frozen=True, eq=False)
class AttributePlace(ReadPlace):
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
        elif is_behind_descriptor(self.target, self.name):
            self.target.__dict__[self.name] = value
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
        if is_behind_descriptor(self.target, self.name):
            self.target.__dict__.pop(self.name, None)
        elif isinstance(self.target, torch.nn.Module):
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
        return next(iter(self._of_classes()), MISSING)

    def in_turn(self) -> list[Any]:
        """What Python finds by the name: what the object has, then what its class and the bases have, as it stands."""
        own = MISSING if isinstance(self.target, super) else self.get()
        return [*([] if own is MISSING else [own]), *self._of_classes()]

    def _of_classes(self) -> Iterator[Any]:
        found = (vars(base)[self.name] for base in self._behind() if self.name in vars(base))
        return itertools.takewhile(lambda member: not isinstance(member, MemberDescriptorType), found)

    def _behind(self) -> tuple[type, ...]:
        """The classes in which Python looks where the object has nothing."""
        if isinstance(self.target, super):
            return _behind_super(self.target)
        return self.target.__mro__[1:] if isinstance(self.target, type) else type(self.target).__mro__

    @property
    def is_plainly_found(self) -> bool:
        """Whether Python looks for it in the object and then in its class, and keeps what it computes, if anything.

        Of a class: so does Python for its instances, and what they find is as it stands there.
        """
        kind, default = type(self.target), self.default
        computes = hasattr(type(default), "__get__")
        if not isinstance(self.target, type):
            computes = computes and not isinstance(default, COMPUTED_ONCE)
        elif _is_usual(kind, type) and class_member(kind, self.name) is None:
            kind = self.target
        else:
            return False
        return _is_usual(kind, torch.nn.Module) and not self.is_computed and not computes

    def _is_plain(self) -> bool:
        return not self._is_described() and isinstance(own_attributes(self.target), dict)

    def _is_described(self) -> bool:
        """Whether a descriptor of the class says what is stored; asked of the class it may give another object."""
        return hasattr(type(inspect.getattr_static(type(self.target), self.name, None)), "__set__")

    def __str__(self) -> str:
        owner = self.target if isinstance(self.target, type) else type(self.target)
        return f"{owner.__name__}.{self.name}"


def _behind_super(target: Any) -> tuple[type, ...]:
    kinds: tuple[type, ...] = () if target.__self_class__ is None else target.__self_class__.__mro__
    return kinds[kinds.index(target.__thisclass__) + 1 :] if target.__thisclass__ in kinds else ()


def _is_usual(kind: type, base: type) -> bool:
    """Whether a class has Python's way to look for attributes, or that of ``base``, if it is one."""
    known = (class_member(base, "__getattr__"),) if issubclass(kind, base) else ()
    asks = class_member(kind, "__getattr__") in (None, *known)
    return asks and is_slot(class_member(kind, "__getattribute__"), "__getattribute__")


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
class GlobalPlace(ReadPlace):
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
class CellPlace(ReadPlace):
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
