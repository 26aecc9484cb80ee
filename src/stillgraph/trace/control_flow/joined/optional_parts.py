"""None or a tuple: what paths leave of ``best = None`` and ``best = (score, index)`` is one tuple with a flag.

The flag says whether there is a tuple. Where there is none, nobody reads what stands for its parts. So a loop carries
the flag and the parts, and where paths meet, a tuple of one of them and such a value of the other are one again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.leaves import DEAD
from stillgraph.trace.control_flow.joined.ruled_out import OnPath
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives, is_leaf, is_lost
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.values.containers import split
from stillgraph.trace.values.several import known_in


@dataclass(frozen=True)
class OptionalTuple:
    """Whether there is a tuple, as a truth value that may be staged, and the tuple; `DEAD` where there is none."""

    there: Any
    tuple: Any

    def is_like(self, other: OptionalTuple) -> bool:
        """Whether both have tuples of one type and length, as far as they have any."""
        if self.tuple is DEAD or other.tuple is DEAD:
            return True
        mine, others = split(self.tuple), split(other.tuple)
        assert mine is not None and others is not None
        return mine.type is others.type and mine.context == others.context


def optional_tuple(value: Any, opposite: Callable[[Any], Any]) -> OptionalTuple | None:
    """None, a tuple, or one of the two, as a tuple with a flag; None for anything else.

    Args:
        value: what a path leaves.
        opposite: gives the opposite of a condition, in the region of that path.
    """
    if value is None or value is DEAD:
        return OptionalTuple(False, DEAD)
    if _is_fixed(value):
        return OptionalTuple(True, value)
    if type(value) is not Unjoined or is_lost(value):
        return None
    known = alternatives(value)
    if known.right is None and _is_fixed(known.left):
        return OptionalTuple(known.flag, known.left)
    if known.left is None and _is_fixed(known.right):
        return OptionalTuple(opposite(known.flag), known.right)
    return None


def unasked(flag: Any) -> Any:
    """Stands for the opposite of a condition where only the tuple matters."""
    return flag


def on_paths(
    recorder: Recorder, sides: tuple[Any, Any], paths: tuple[OnPath, OnPath]
) -> tuple[OptionalTuple, OptionalTuple] | None:
    """What two paths leave, as tuples with flags: where it was told before for one of them, and they are alike."""
    if not any(type(side) is Unjoined for side in sides):
        return None
    found = []
    for value, path in zip(sides, paths):
        with path():
            found.append(optional_tuple(value, recorder.opposite))
    first, second = found
    return None if first is None or second is None or not first.is_like(second) else (first, second)


def _is_fixed(value: Any) -> bool:
    """Whether a value is a tuple of leaves, constants and such tuples: nothing that somebody could change."""
    parts = split(value) if isinstance(value, tuple) else None
    return parts is not None and all(map(_is_fixed_part, parts.children))


def _is_fixed_part(child: Any) -> bool:
    if child is None or is_leaf(child) or isinstance(child, (str, bytes)):
        return True
    return _is_fixed(child) if isinstance(child, tuple) else isinstance(child, Unjoined) and known_in(child) is not None


def none_or(there: Any, made: Any, place: str) -> Unjoined:
    """What stands for a tuple where a flag holds, and else for None."""
    return Unjoined(there, made, None, place, JoinFailure("SG203", f"{describe(made)} on one path, None on the other"))
