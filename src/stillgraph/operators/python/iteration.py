"""Functions that run over iterables: `reversed`, `list`, `tuple`, `sum`, `any` and `all`."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

import torch

from stillgraph.core.lookup import class_member
from stillgraph.operators.conditions.branches import if_, select
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.conditions.truth import truth, truth_number
from stillgraph.operators.consumers.consumers import known_or_list
from stillgraph.operators.consumers.folding import fold
from stillgraph.operators.containers import sequences
from stillgraph.operators.containers.drawing import drawn, items_of, listed
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.watched import run_over, watched_container
from stillgraph.operators.control_flow.closing import before_stop
from stillgraph.operators.control_flow.generators import Produced
from stillgraph.operators.dispatch import for_
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.heap.exits import BREAK, Exit
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.numbers import is_number


def is_unknown(value: Any) -> bool:
    """Whether only the run knows how many elements a container has."""
    return lists.is_spread(value) or container_of(value) is not None


def sequence_for(value: Any) -> Any:
    """A sequence if running over ``value`` could have to be staged."""
    if (
        isinstance(value, (torch.Tensor, Indexed, range))
        or is_unknown(value)
        or (isinstance(value, (list, tuple)) and value and all(is_number(v) for v in value))
    ):
        return run_over(value)
    return None


def take_over(parts: Iterable[Any]) -> bool:
    """Let a new iterator alone draw from sequences, by their indices; False where some have been drawn from already."""
    iterators = [part for part in parts if part.once]
    capture = capturing()
    if capture.in_arm and not all(map(capture.iterators.is_made_here, iterators)):
        return False  # only some paths would take it over
    if not all(each.is_fresh for each in iterators) or len(set(map(id, iterators))) < len(iterators):
        return False
    for each in iterators:
        each.hand_over()
    return True


def reversed_(value: Any, /) -> Any:
    """``reversed``."""
    sequence = run_over(value) if isinstance(watched_container(value), _REVERSIBLE) else sequence_for(value)
    if isinstance(value, Indexed) and value.once:
        raise TypeError(f"'{type(value).__name__}' object is not reversible")
    if isinstance(value, torch.Tensor):
        return sequences.StagedRows(value.flip(0))
    return reversed(value) if sequence is None else sequences.StagedReversed(sequence)


_REVERSIBLE = (dict, collections.deque)


def list_(iterable: Any = (), /) -> Any:
    """``list``."""
    return list(known_or_list(iterable, listed))


def tuple_(iterable: Any = (), /) -> Any:
    """``tuple``."""
    return tuple(known_or_list(iterable, listed))


def sum_(iterable: Any, /, start: Any = 0) -> Any:
    """``sum``: additions from left to right, beginning with ``start``."""
    if not any(class_member(type(iterable), name) for name in ("__iter__", "__getitem__")):
        iter(iterable)  # which says what `functools.reduce` says otherwise
    return fold(lambda total, value: total + value, iterable, start)


def any_(iterable: Any, /) -> Any:
    """``any``, which stops at the first true value."""
    return _until(iterable, True)


def all_(iterable: Any, /) -> Any:
    """``all``, which stops at the first false value."""
    return _until(iterable, False)


def _until(iterable: Any, stop_at: bool) -> Any:
    if method_of(iterable, "__next__") is not None:
        iterable = drawn(iterable)
    by_position = isinstance(iterable, Indexed) and iterable.once and not iterable.is_known
    if by_position or isinstance(iterable, Produced) or is_unknown(iterable):
        return _until_in_loop(iterable, stop_at)
    capture = capturing()
    iterator = items_of(iterable)

    def go_on() -> Any:
        for value in iterator:
            known = truth(capture, value)
            if isinstance(known, bool):
                if known is stop_at:
                    return stop_at
                continue
            number = truth_number(capture, known)
            before_stop(capture, iterator)
            if stop_at:
                return select(capture, number, lambda: True, go_on)
            return select(capture, number, go_on, lambda: False)
        return not stop_at

    return go_on()


def _until_in_loop(iterable: Any, stop_at: bool) -> Any:
    """``any`` or ``all`` as a loop that may be staged."""
    capture = capturing()
    found: Any = not stop_at

    def one(value: Any) -> Exit | None:
        def stop() -> Exit:
            nonlocal found
            found = stop_at
            return BREAK

        known = truth_number(capture, value)
        return if_(known, stop, keeps=("found",)) if stop_at else if_(known, lambda: None, stop, keeps=("found",))

    for_(iterable, one, keeps=("found",))
    return found
