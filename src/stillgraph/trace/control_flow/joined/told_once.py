"""Joined containers that are one object from before on several paths: one flag tells of it, not one for each path."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.heap.paths import ALWAYS, On
from stillgraph.trace.values.numbers import StagedNumber


def told_once(recorder: Recorder, origin: Origin) -> Origin:
    """What a joined container stands for, with one flag for each object: who changes it changes each of them once.

    A branch in a branch of which several paths leave the container as it was, in an iteration that is unrolled, would
    double what is to be asked by each iteration.
    """
    leaves = [*_leaves(origin, ALWAYS)]
    older = {id(side): side for side, is_older, _ in leaves if is_older}
    if len(older) == sum(is_older for _, is_older, _ in leaves) or not _has_flags(origin):
        return origin
    told: Any = origin.joined
    for known in reversed(older.values()):
        on = frozenset(path for side, _, path in leaves if side is known)
        others = frozenset(path for side, _, path in leaves if side is not known)
        flag, is_another = _is(recorder, known, origin), told is not origin.joined
        told = Origin(origin.joined, flag, known, told, (True, is_another), (on, others))
    assert isinstance(told, Origin)
    return told


def _leaves(origin: Origin, path: On) -> Iterator[tuple[Any, bool, On]]:
    """What an origin leads to: whether that was there before, and a path on which it does."""
    for side, is_older, ons in zip((origin.left, origin.right), origin.older, origin.on):
        for on in ons:
            if isinstance(side, Origin):
                yield from _leaves(side, path | on)
            else:
                yield side, is_older, path | on


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
