"""How control left a block: by falling off its end (`None`), or by an `Exit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stillgraph.trace.heap.places import MISSING


@dataclass(frozen=True)
class Exit:
    """``break``, ``continue`` or ``return value``. Where paths with different exits were joined, the flags are staged.

    ``ended`` is used by loops themselves: their own test said no.
    """

    broke: Any = False
    continued: Any = False
    returned: Any = False
    ended: Any = False
    value: Any = MISSING

    @property
    def flags(self) -> tuple[Any, ...]:
        """The flags; at most one is true in a run."""
        return tuple(getattr(self, name) for name in EXITS)

    @property
    def certain(self) -> bool:
        """Whether control certainly left the block."""
        return any(flag is True for flag in self.flags)

    @property
    def taken(self) -> Exit:
        """This exit on a path where it is known that control left: if it has but one way out, that was the way."""
        names = [name for name in EXITS if getattr(self, name) is not False]
        return replace(self, **{names[0]: True}) if len(names) == 1 else self


EXITS = ("broke", "continued", "returned", "ended")
"""The names of the flags."""

BREAK = Exit(broke=True)
CONTINUE = Exit(continued=True)


def Return(value: Any) -> Exit:
    """``return value``."""
    return Exit(returned=True, value=value)
