"""Sources: where a value is found when a static function is called, as plain data."""

from __future__ import annotations

import collections
import sys
from dataclasses import dataclass
from types import FunctionType, MappingProxyType
from typing import Any

import torch


def _hash_once(source: Any) -> int:
    """The hash of a source that begins at another, which would go through all of the path each time it is looked up."""
    fields = vars(source)
    found: int | None = fields.get("_hash")
    if found is None:
        found = fields["_hash"] = hash((type(source), *(fields[name] for name in source.__dataclass_fields__)))
    return found


@dataclass(frozen=True)
class Argument:
    """A call's argument: its position (``self`` of a method or module is position 0) or its keyword."""

    key: int | str

    def __str__(self) -> str:
        return f"args[{self.key}]" if isinstance(self.key, int) else str(self.key)


@dataclass(frozen=True)
class Attribute:
    """``base.name``, read with `getattr`."""

    base: Source
    name: str

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}.{self.name}"


@dataclass(frozen=True)
class Item:
    """``base[key]``: an element of a sequence or mapping.

    Attributes:
        kind: of a container whose own class gives ``[]`` another meaning, the built-in class that keeps its elements.
    """

    base: Source
    key: Any
    kind: Any = None

    def of(self, container: Any) -> Any:
        """The element of a container. No code of the user's is run for it, be it a ``__missing__``.

        Raises:
            LookupError: there is none, or what is there now is no built-in container.
        """
        if self.kind is None and (isinstance(container, torch.Tensor) or not _is_built_in(container, "__getitem__")):
            raise LookupError(f"a {type(container).__qualname__} is no such container")
        mapping = next((kind for kind in _MAPPINGS if isinstance(container, kind)), None)
        if mapping is not None and not mapping.__contains__(container, self.key):
            raise KeyError(self.key)
        return container[self.key] if self.kind is None else self.kind.__getitem__(container, self.key)

    def __eq__(self, other: object) -> bool:
        """As tuples compare: a key that is the same object is not asked (3.13's own would ask)."""
        if type(other) is not Item:
            return NotImplemented
        if isinstance(self.key, torch.Tensor) or isinstance(other.key, torch.Tensor):  # whose `==` compares numbers
            return self.key is other.key and (self.kind, self.base) == (other.kind, other.base)
        return (self.key, self.kind, self.base) == (other.key, other.kind, other.base)

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}[{self.key!r}]"


def _is_built_in(value: Any, name: str) -> bool:
    """Whether a special method of a value's is none that is written in Python."""
    return not isinstance(getattr(type(value), name, None), FunctionType)


@dataclass(frozen=True)
class Slot:
    """``base.__dict__[name]``, or an entry of a module's ``_parameters``, ``_buffers`` or ``_modules``."""

    base: Source
    table: str  # "__dict__", "_parameters", "_buffers" or "_modules"
    name: str

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}.{self.name}"


@dataclass(frozen=True)
class Global:
    """A module-level name, looked up in ``sys.modules[module].__dict__`` at every call."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, eq=False)
class Cell:
    """What a closure cell holds; compared by the cell's identity."""

    name: str
    cell: Any

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.cell is other.cell

    def __hash__(self) -> int:
        return id(self.cell)


@dataclass(frozen=True, eq=False)
class Held:
    """An object the program holds itself, for want of a path to it from the call (compared by identity)."""

    name: str
    value: Any

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True)
class Called:
    """``base()``: what a weak reference refers to."""

    base: Source

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"{self.base}()"


@dataclass(frozen=True)
class Element:
    """The element of a set, or the key of a mapping, that iterating over it gives at a position."""

    base: Source
    position: int

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"list({self.base})[{self.position}]"


@dataclass(frozen=True)
class Upcoming:
    """What the iterator at ``base`` gives after ``position`` other items; it stays where it is."""

    base: Source
    position: int

    __hash__ = _hash_once

    def __str__(self) -> str:
        return f"next({self.base})" if self.position == 0 else f"next({self.base}) after {self.position} others"


@dataclass(frozen=True)
class Memory:
    """The tensor that shares the memory of the numpy array at ``base``, or holds the number of numpy's there."""

    base: Source

    __hash__ = _hash_once

    @staticmethod
    def of(value: Any) -> torch.Tensor:
        """The tensor of an array or number.

        Raises:
            TypeError: it is neither, of a class of its own, read-only, of a dtype that torch lacks, or one of numpy's
                truths, which code may know by identity.
            ValueError: torch has no such memory.
        """
        numpy: Any = sys.modules.get("numpy")
        array = value
        if numpy is not None and isinstance(value, numpy.generic) and _is_plain_number(value, numpy):
            array = numpy.array(value)
        if numpy is None or type(array) is not numpy.ndarray or not array.flags.writeable:
            raise TypeError(f"a {type(value).__qualname__} is no array that torch shares")
        return torch.from_numpy(array)

    def __str__(self) -> str:
        return f"torch.from_numpy({self.base})"


def _is_plain_number(value: Any, numpy: Any) -> bool:
    """Whether a scalar of numpy's is of its dtype's own class, and no truth."""
    return type(value) is value.dtype.type and not isinstance(value, numpy.bool_)


def has_memory(value: Any) -> bool:
    """Whether there is a `Memory` of a value."""
    try:
        Memory.of(value)
    except (TypeError, ValueError):
        return False
    return True


Source = Argument | Attribute | Item | Slot | Global | Cell | Held | Called | Element | Upcoming | Memory
INNER = (Attribute, Item, Slot, Called, Element, Upcoming, Memory)
"""The sources that begin at another, their ``base``."""


def item_of(container: Any, base: Source, key: Any) -> Item:
    """Where a container keeps an element, itself being at ``base``."""
    if type(container) in _PLAIN:
        return Item(base, key)
    kind = next((kind for kind in _CONTAINERS if isinstance(container, kind)), None)
    plain = kind is None or type(container).__getitem__ is kind.__getitem__
    if kind is MappingProxyType or (kind is dict and hasattr(type(container), "__missing__")):
        plain = False  # a guard that looks for what is not there is not to make it
    return Item(base, key) if plain else Item(base, key, kind)


_PLAIN = frozenset({dict, list, tuple})
_MAPPINGS: tuple[Any, ...] = (dict, MappingProxyType)  # the latter, a view's, may be of a `defaultdict`
_CONTAINERS: tuple[Any, ...] = (*_MAPPINGS, list, tuple, collections.deque)
