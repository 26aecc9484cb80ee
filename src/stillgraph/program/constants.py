"""The constants of which a place may hold one, as a table: in the graph, a whole number says which."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from types import BuiltinFunctionType, EllipsisType, NoneType, NotImplementedType
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly

MOST_ENTRIES = 64
_BY_VALUE = (str, bytes, bool, int, float, torch.dtype, torch.device)
_KINDS = (*_BY_VALUE, NoneType, EllipsisType, NotImplementedType, torch.layout, torch.memory_format)
_NUMBERS = (bool, int, float)


class Known:
    """A constant as an entry of a table: equal to another that no code can tell from it."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        kind = type(value)
        told = (repr(value) if kind is float else value) if kind in _BY_VALUE else id(value)
        self.value = value
        self._key = kind, told

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value) if is_constant(self.value) else f"<{type(self.value).__name__}>"


def is_constant(value: Any) -> bool:
    """Whether a value is a constant that a table may have: it has no parts, and nobody can change it.

    A complex number has two parts, which paths join like any floats.
    """
    if is_exactly(value, _KINDS) or isinstance(value, enum.Enum):
        return True
    return isinstance(value, (type, BuiltinFunctionType)) and getattr(value, "__self__", None) is None


def is_table(entries: Iterable[Known]) -> bool:
    """Whether constants are told apart by a table: numbers alone have types of their own, be some of them None."""
    kinds = {type(entry.value) for entry in entries}
    others = kinds - {*_NUMBERS, NoneType}
    return bool(others) or kinds.isdisjoint(_NUMBERS)


def united(*tables: Iterable[Known]) -> tuple[Known, ...]:
    """The entries of several tables, each once, in order."""
    return tuple(dict.fromkeys(entry for table in tables for entry in table))
