"""The order in which guards are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from stillgraph.program.guards import (
    INNER,
    AliasGuard,
    ApartGuard,
    EnvironmentGuard,
    FactGuard,
    Guard,
    KeysGuard,
    LengthGuard,
    ModeGuard,
    ReadingGuard,
    SeparateGuard,
    SizeGuard,
    Source,
    TensorGuard,
    TypeGuard,
)


@dataclass(frozen=True)
class Reading:
    """Stands among the guards for a source that is only read: an input, or a tensor that is checked at the end."""

    source: Source


Checked = TypeVar("Checked", bound=Guard | Reading)


def in_checking_order(guards: Sequence[Checked]) -> list[Checked]:
    """Guards as they are checked: those of the arguments, then objects from the outside inwards, the cheap ones first.

    A guard comes after those of the objects its source goes through. Objects are visited depth first, so that what was
    read of one is still at hand for the next. Tensors inside objects are many and are checked together at the end.
    """
    return sorted(guards, key=_Order().rank)


@dataclass(frozen=True)
class _Order:
    """Ranks guards; numbers sources as they are first seen."""

    _paths: dict[Source, tuple[int, ...]] = field(default_factory=dict)

    def rank(self, guard: Guard | Reading) -> tuple[int, tuple[int, ...], int]:
        """The stage (arguments, objects, several objects, tensors, sizes), the place within it, the cost."""
        match guard:
            case ModeGuard() | ReadingGuard() | EnvironmentGuard():
                return 0, (), 5
            case SizeGuard(sizes=sizes):
                return (0, (), 7) if all(_is_outermost(source) for _, source, _ in sizes) else (4, (), 0)
            case TensorGuard(source=source):
                return (0, (), 6) if _is_outermost(source) else (3, (), 0)
            case AliasGuard(left=left, right=right):
                return (0, (), 1) if _is_outermost(left) and _is_outermost(right) else (2, (), 0)
            case ApartGuard(sources=sources):
                return (0, (), 1) if all(map(_is_outermost, sources)) else (2, (), 0)
            case SeparateGuard():
                return 2, (), 1
            case FactGuard(source=source):
                return (0, (), 7) if _is_outermost(source) else (4, (), 0)
        cost = _COSTS.get(type(guard), 1)
        return (0, (), cost) if _is_outermost(guard.source) else (1, self._path(guard.source), cost)

    def _path(self, source: Source) -> tuple[int, ...]:
        try:
            path = self._paths.get(source)
        except TypeError:  # an Item whose key cannot be hashed
            return (*self._path(source.base), _LAST) if isinstance(source, INNER) else (_LAST,)
        if path is None:
            outer = self._path(source.base) if isinstance(source, INNER) else ()
            path = self._paths[source] = (*outer, len(self._paths))
        return path


_COSTS: dict[type, int] = {TypeGuard: 0, LengthGuard: 2, KeysGuard: 3, Reading: 4}
_LAST = 1 << 30


def _is_outermost(source: Source) -> bool:
    return not isinstance(source, INNER)
