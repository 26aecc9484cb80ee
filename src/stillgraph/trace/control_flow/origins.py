"""Which values of a branch its joined values are: so a condition that tells the one tells of the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stillgraph.core.lookup import is_exactly
from stillgraph.trace.control_flow.deductions import Deductions, version
from stillgraph.trace.graph.region import Region

UNTOLD = object()
"""In the place of a side that is no constant."""

_CONSTANTS = (bool, int, float, type(None))


@dataclass(frozen=True, eq=False)
class Origin:
    """The condition of a branch, and what each arm left for a joined value."""

    value: Any
    condition: Any
    written: int | None  # the version of the condition at the branch
    sides: tuple[Any, Any]

    @property
    def holds(self) -> bool:
        """Whether the condition is still what it was."""
        return version(self.condition) == self.written


class Origins:
    """Where the values come from that the branches of one capture hand out."""

    def __init__(self, deductions: Deductions) -> None:
        self._deductions = deductions
        self._origins: dict[int, Origin] = {}

    def tell(self, origin: Origin) -> None:
        """Be told where a value comes from."""
        self._origins[id(origin.value)] = origin

    def answer(self, value: Any, asked: Callable[[Any], bool | None], region: Region) -> bool | None:
        """What is asked of a value, answered by the side that it is in a region; None if only the run knows."""
        origin = self._of(value)
        taken = None if origin is None else self._deductions.decided(origin.condition, region)
        return None if origin is None or taken is None else asked(origin.sides[0 if taken else 1])

    def connect(self, value: Any, asked: Callable[[Any], bool | None], flag: Any) -> None:
        """Let the condition tell of a flag, which is what is asked of a value, and the flag of the condition.

        Args:
            value: that may come from a branch.
            asked: the answer for a side; None where there is none before the run.
            flag: the staged answer.
        """
        origin = self._of(value)
        for taken, side in zip((True, False), () if origin is None else origin.sides):
            told = asked(side)
            if origin is not None and told is not None:
                self._deductions.implies(origin.condition, taken, flag, told)
                self._deductions.implies(flag, not told, origin.condition, not taken)

    def constant(self, value: Any, region: Region) -> Any:
        """The constant that a value is in a region, or `UNTOLD`."""
        origin = self._of(value)
        taken = None if origin is None else self._deductions.decided(origin.condition, region)
        if origin is None or taken is None:
            return UNTOLD
        side = origin.sides[0 if taken else 1]
        return side if is_exactly(side, _CONSTANTS) else UNTOLD

    def _of(self, value: Any) -> Origin | None:
        origin = self._origins.get(id(value))
        return origin if origin is not None and origin.holds else None
