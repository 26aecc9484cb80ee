"""Paths through branches: what holds on one of them need not hold on another.

A path is the arms that it goes through, each told by its region. Of the two arms of a branch it goes through one.
"""

from __future__ import annotations

from typing import Any

On = frozenset[Any]
ALWAYS: On = frozenset()  # whatever arms a path goes through
Paths = frozenset[On]  # one or another of these
EVERY: Paths = frozenset((ALWAYS,))
_MOST = 8


def paths_of(arms: tuple[Any, Any] | None) -> tuple[Paths, Paths]:
    """The paths through each of the two arms of a branch; if there is none, what is said holds on every path."""
    return (EVERY, EVERY) if arms is None else (frozenset((On(arms[:1]),)), frozenset((On(arms[1:]),)))


def note_path(paths: set[On], on: On) -> bool:
    """Add a path to some, of too many make all; whether that is new."""
    if any(each <= on for each in paths):
        return False
    paths -= {each for each in paths if on <= each}
    paths.add(on)
    if len(paths) > _MOST:
        paths.clear()
        paths.add(ALWAYS)
    return True
