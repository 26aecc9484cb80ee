"""Equality as guards mean it: two values are equal where no program could tell them apart."""

from __future__ import annotations

import copy
import enum
import numbers
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.lookup import behind_view, is_exactly
from stillgraph.program.facts.values import is_value, value_key

BY_IDENTITY = (type, enum.Enum, torch.dtype, torch.layout, torch.memory_format, bool, type(None), type(Ellipsis))


def strict_key(value: Any) -> Any:
    """A value equal for two constants exactly when no program could tell them apart.

    Plain ``==`` is too weak (``1 == True == 1.0``, ``0.0 == -0.0``) and too strong (NaN is not NaN).
    """
    kind = type(value)
    if isinstance(value, BY_IDENTITY):
        return kind, id(value)
    if is_value(value):
        return kind, value_key(value)
    if isinstance(value, (tuple, list, set, frozenset)):  # equal sets may be gone through in another order
        return kind, tuple([strict_key(item) for item in value])
    if isinstance(value, dict):
        return kind, tuple([(strict_key(key), strict_key(item)) for key, item in value.items()])
    if isinstance(value, (slice, range)):
        return kind, strict_key((value.start, value.stop, value.step))
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Rational):
        return kind, struct.pack("2d", value.real, value.imag)  # which tells the signs of zeros and of NaNs apart
    return kind, value


@dataclass(frozen=True, eq=False)
class Contents:
    """A container of numbers and texts, to be compared at C's speed with what it holds later.

    Not of sets: the order of a set's copy may be another.
    """

    kind: type  # of a view of a mapping, which is compared by what it shows
    value: Any
    kinds: Any
    exact: Any  # the strict key, where ``==`` and the types do not tell everything

    @classmethod
    def of(cls, value: Any) -> Contents:
        """The contents of a container as they are now; it is copied."""
        kind, value = type(value), behind_view(value)
        zero = any(is_exactly(item, (float, complex)) and not item for item in _items(value))
        copied = value if isinstance(value, tuple) else copy.copy(value)
        return cls(kind, copied, _kinds(value), strict_key(value) if zero else None)

    def are_in(self, value: Any) -> bool:
        """Whether a container holds just that."""
        held = behind_view(value)
        if type(value) is not self.kind or type(held) is not type(self.value):
            return False
        if held != self.value or _kinds(held) != self.kinds:
            return False
        return self.exact is None or bool(strict_key(held) == self.exact)


def _items(container: Any) -> Iterable[Any]:
    return (*container, *container.values()) if isinstance(container, dict) else container


def _kinds(container: Any) -> Any:
    if isinstance(container, dict):
        return [*map(type, container.values())], [*container], [*map(type, container)]
    return [*map(type, container)]


def same_reading(value: Any, expected: Any) -> bool:
    """Whether a setting is as it was: the same object, or an equal constant."""
    return value is expected or bool(strict_key(value) == strict_key(expected))
