"""The order in which guards are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from stillgraph.program.guards import Guard
from stillgraph.program.sources import INNER, Source
from stillgraph.runtime.guards.kinds.inputs import Fetch
from stillgraph.runtime.guards.kinds.table import kind_of

Checked = TypeVar("Checked", bound=Guard | Fetch)

_LAST = 1 << 30


def in_checking_order(guards: Sequence[Checked]) -> list[Checked]:
    """Guards as they are checked: those of the arguments, then objects from the outside inwards, the cheap ones first.

    A guard comes after those of the objects its source goes through. Objects are visited depth first, so that what was
    read of one is still at hand for the next. Tensors inside objects are many and are checked together at the end.
    """
    places = _Places()
    return sorted(guards, key=lambda guard: kind_of(guard).rank(guard, places.of))


@dataclass(frozen=True)
class _Places:
    """Numbers sources as they are first seen."""

    _paths: dict[Source, tuple[int, ...]] = field(default_factory=dict)

    def of(self, source: Source) -> tuple[int, ...]:
        """The numbers of a source and of those that lead to it, from the outside inwards."""
        try:
            path = self._paths.get(source)
        except TypeError:  # an Item whose key cannot be hashed
            return (*self.of(source.base), _LAST) if isinstance(source, INNER) else (_LAST,)
        if path is None:
            outer = self.of(source.base) if isinstance(source, INNER) else ()
            path = self._paths[source] = (*outer, len(self._paths))
        return path
