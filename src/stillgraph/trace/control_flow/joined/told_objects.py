"""One of several objects from before a loop or branch, or None: a number in the graph says which.

So `best = None`, and then `best = track` of some tracks; a node of a tree, and then one below it. It is that object
itself: who changes it changes that one, and `is` tells them apart.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stillgraph.program.constants import Known, is_constant, united
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, alternatives, entries_of, is_lost
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.several import known_in


def objects_in(value: Any, is_older: Callable[[Any], bool]) -> tuple[Known, ...] | None:
    """The objects and constants of which a value is one; None where it may be something else.

    Args:
        value: what a place holds, before a loop or branch, or behind it.
        is_older: whether an object was there before.
    """
    if isinstance(value, Picked):
        entries: tuple[Known, ...] | None = entries_of(value)
    elif isinstance(value, Unjoined):
        sides = () if is_lost(value) else (alternatives(value).left, alternatives(value).right)
        told = [objects_in(side, is_older) for side in sides]
        entries = united(*(side for side in told if side is not None)) if told and None not in told else None
    else:
        entries = (Known(value),)
    return entries if entries is not None and all(_is_told(entry.value, is_older) for entry in entries) else None


def _is_told(value: Any, is_older: Callable[[Any], bool]) -> bool:
    return value is MISSING or is_constant(value) or is_older(value)


def tables_of(
    left: Any, right: Any, is_older: Callable[[Any], bool]
) -> tuple[tuple[Known, ...], tuple[Known, ...]] | None:
    """What two paths leave, as entries of a table: of constants, or of objects from before them.

    None where it is something else, or where none of the two is one of several yet: then the branch itself tells.
    """
    if not any(isinstance(value, Unjoined) for value in (left, right)):
        return None
    for entries in (known_in, functools.partial(objects_in, is_older=is_older)):
        first, second = entries(left), entries(right)
        if first is not None and second is not None:
            return first, second
    return None


def has_objects(entries: tuple[Known, ...]) -> bool:
    """Whether some entries are no constants."""
    return not all(entry.value is MISSING or is_constant(entry.value) for entry in entries)
