"""Lists that each call makes longer and reads, so that each call has a program of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stillgraph.program.effects import SetAttribute, SetContents
from stillgraph.program.guards import LengthGuard
from stillgraph.program.program import Program
from stillgraph.program.sources import Attribute, Slot, Source

CALLS = 6
"""How many programs in a row tell that a list grows for good, and does not merely fill up."""


def growing(programs: Sequence[Program]) -> tuple[Source, list[int]] | None:
    """A list that is longer for each of some programs, by as much, and that each of them writes to.

    Args:
        programs: in the order in which they were captured.

    Returns:
        Where it is, and how long it was for each; None if there is none.
    """
    if len(programs) < CALLS:
        return None
    lengths = [{g.source: g.length for g in program.guards if isinstance(g, LengthGuard)} for program in programs]
    for source in lengths[0]:
        found = [each[source] for each in lengths if source in each]
        steps = {after - before for before, after in itertools.pairwise(found)}
        if len(found) == len(programs) and len(steps) == 1 and min(steps) > 0 and _is_written(programs[-1], source):
            return source, found
    return None


def _is_written(program: Program, source: Source) -> bool:
    if not isinstance(source, (Attribute, Slot)):
        return any(isinstance(each, SetContents) and each.target == source for each in program.effects)
    for effect in program.effects:
        if isinstance(effect, SetContents) and effect.target == source:
            return True
        if isinstance(effect, SetAttribute) and (effect.target, effect.name) == (source.base, source.name):
            return True
    return False


def told(name: str, source: str, lengths: Sequence[int]) -> str:
    """The warning about such a list."""
    return (
        f"{name} is captured anew at every call, for each makes {source} longer: it had "
        f"{', '.join(map(str, lengths))} elements. Write {source}.append(...) without reading the list in the same "
        "call: one program does for any length. Where the call reads all of it, keep a tensor of fixed size and an "
        "index in its place, or make the list longer outside the static function."
    )
