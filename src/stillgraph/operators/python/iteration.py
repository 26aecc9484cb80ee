"""Functions that run over iterables: `enumerate`, `zip`, `reversed`, `list`, `tuple`, `sum`, `any` and `all`."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.conditions.branches import if_, select
from stillgraph.operators.conditions.truth import truth, truth_number
from stillgraph.operators.consumers.consumers import is_looped_over, known_or_list
from stillgraph.operators.consumers.folding import fold
from stillgraph.operators.containers import sequences
from stillgraph.operators.containers.drawing import items_of, listed
from stillgraph.operators.containers.watched import run_over, watched_container
from stillgraph.operators.control_flow.closing import before_stop
from stillgraph.operators.control_flow.generators import Produced, enumerated, strictly
from stillgraph.operators.dispatch import for_
from stillgraph.operators.elements import lists
from stillgraph.operators.python.numbers import capturing, index
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.heap.exits import BREAK, Exit
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.numbers import StagedNumber, is_number


def _is_unknown(value: Any) -> bool:
    """Whether only the run knows how many elements a container has."""
    return lists.is_spread(value) or container_of(value) is not None


def _sequence(value: Any) -> Any:
    """A sequence if running over ``value`` could have to be staged."""
    if (
        isinstance(value, (torch.Tensor, sequences.Indexed, range))
        or _is_unknown(value)
        or (isinstance(value, (list, tuple)) and value and all(is_number(v) for v in value))
    ):
        return run_over(value)
    return None


def _take_over(parts: Iterable[Any]) -> bool:
    """Let a new iterator alone draw from sequences, by their indices; False where some have been drawn from already."""
    iterators = [part for part in parts if part.once]
    if any(each.cursor is not None for each in iterators) or len(set(map(id, iterators))) < len(iterators):
        return False
    for each in iterators:
        each.hand_over()
    return True


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """``enumerate``."""
    start = index(start)
    if isinstance(iterable, Produced) and not iterable.begun:
        return enumerated(iterable, start)
    sequence = _sequence(iterable)
    if sequence is None or not _take_over((sequence,)):
        if isinstance(start, StagedNumber):
            return ((operator.add(start, position), each) for position, each in enumerate(iterable))
        return enumerate(iterable, start)
    return sequences.Enumerated(sequence, start)


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """``zip``."""
    if any(map(_is_unknown, iterables)):
        return _zip_with_spread(iterables, strict)
    parts = [_sequence(i) for i in iterables]
    if any(part is not None and _has_unknown_length(part) for part in parts):
        texts = [tuple(i) if type(i) is str else i for i in iterables]
        parts = [run_over(i) if part is None else part for i, part in zip(texts, parts)]
    if not parts or any(part is None for part in parts) or not _take_over(parts):
        return zip(*iterables, strict=strict)
    return _zipped(parts, strict)


def _has_unknown_length(sequence: Any) -> bool:
    """Whether only the run knows how many elements a sequence has, one that nobody has drawn from."""
    return sequence.cursor is None and not sequence.endless and isinstance(sequence.length(), StagedNumber)


def _zip_with_spread(iterables: Any, strict: bool) -> Any:
    parts = [run_over(i) for i in iterables]
    if any(part is None for part in parts):
        raise refuse("SG210", "a list of unknown length is zipped with what cannot be indexed", location=here())
    if not _take_over(parts):
        raise refuse("SG210", "a list of unknown length is zipped with an iterator that was advanced", location=here())
    return _zipped(parts, strict)


def _zipped(parts: list[Any], strict: bool) -> Any:
    zipped = sequences.Zipped(tuple(parts))
    return strictly(zipped, functools.partial(_require_one_length, parts)) if strict else zipped


def _require_one_length(parts: list[Any]) -> None:
    """Raise what a strict ``zip`` raises behind the last of what it gives."""
    lengths = [part.length() for part in parts]
    for count, length in enumerate(lengths[1:], 2):
        others = "argument 1" if count == 2 else f"arguments 1-{count - 1}"
        said = f"zip() argument {count} is {{}} than {others}"
        for differs, how in ((length < lengths[0], "shorter"), (length > lengths[0], "longer")):
            if_(differs, functools.partial(_raise_in_arm, ValueError(said.format(how))))


def _raise_in_arm(error: Exception) -> NoReturn:
    if not capturing().in_arm:
        raise error
    emit_raise(capturing(), error)
    raise Diverged


def reversed_(value: Any, /) -> Any:
    """``reversed``."""
    sequence = run_over(value) if isinstance(watched_container(value), _REVERSIBLE) else _sequence(value)
    if isinstance(value, sequences.Indexed) and value.once:
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
    if not is_looped_over(iterable):
        items = known_or_list(iterable)
        iterable = items if lists.is_spread(items) else iter(items)
    return fold(lambda total, value: total + value, iterable, start)


def any_(iterable: Any, /) -> Any:
    """``any``, which stops at the first true value."""
    return _until(iterable, True)


def all_(iterable: Any, /) -> Any:
    """``all``, which stops at the first false value."""
    return _until(iterable, False)


def _until(iterable: Any, stop_at: bool) -> Any:
    if isinstance(iterable, Produced) or _is_unknown(iterable):
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
