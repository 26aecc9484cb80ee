"""Joined containers that are one object from before on several paths: one flag tells of it, not one for each path."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.paths import EVERY, Paths
from stillgraph.trace.values.numbers import StagedNumber


def told_once(recorder: Recorder, origin: Origin) -> Origin:
    """What a joined container stands for, with one flag for each object: who changes it changes each of them once.

    A branch in a branch of which several paths leave the container as it was, in an iteration that is unrolled, would
    double what is to be asked by each iteration.
    """
    leaves = [*_leaves(origin, EVERY)]
    older = {id(side): side for side, is_older, _ in leaves if is_older}
    if len(older) == sum(is_older for _, is_older, _ in leaves) or not _has_flags(origin):
        return origin
    told: Any = origin.joined
    for known in reversed(older.values()):
        on, others = (
            frozenset(path for side, _, paths in leaves if (side is known) is wanted for path in paths)
            for wanted in (True, False)
        )
        flag, is_another = _is(recorder, known, origin), told is not origin.joined
        told = Origin(origin.joined, flag, known, told, (True, is_another), (on, others))
    assert isinstance(told, Origin)
    return told


def _leaves(origin: Origin, paths: Paths) -> Iterator[tuple[Any, bool, Paths]]:
    """What an origin leads to: whether that was there before, and on which paths it does."""
    for side, is_older, on in zip((origin.left, origin.right), origin.older, origin.on):
        inside = frozenset(before | path for before in paths for path in on)
        if isinstance(side, Origin):
            yield from _leaves(side, inside)
        else:
            yield side, is_older, inside


def _has_flags(origin: Origin) -> bool:
    inner = all(_has_flags(side) for side in (origin.left, origin.right) if isinstance(side, Origin))
    return isinstance(origin.flag, StagedNumber) and inner


def _is(recorder: Recorder, known: Any, value: Any) -> Any:
    """Whether what an origin, or a side of one, stands for is an object: a flag, or known."""
    if not isinstance(value, Origin):
        return value is known
    left, right = _is(recorder, known, value.left), _is(recorder, known, value.right)
    if left is right:
        return left
    found = [] if left is False else [value.flag if left is True else value.flag & left]
    if right is not False:
        opposite = recorder.opposite(value.flag)
        found.append(opposite if right is True else opposite & right)
    return functools.reduce(operator.or_, found)
