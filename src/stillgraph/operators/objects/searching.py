"""``index``, ``count`` and ``remove`` of sequences in which paths leave one of several values."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NoReturn

from stillgraph.core.lookup import is_exactly
from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.objects.changes import note_contents
from stillgraph.operators.objects.part_by_part import holds_several, same
from stillgraph.operators.objects.strings import repr_
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.spreads import is_spread
from stillgraph.trace.values.text import StagedText


def is_searched(values: Any, args: tuple[Any, ...]) -> bool:
    """Whether only the run knows where in a sequence something is, because of what paths leave in it, or of texts."""
    if not args or not is_exactly(values, (list, tuple, collections.deque)):
        return False
    has_text = any(isinstance(each, StagedText) for each in (*values, args[0]))
    return holds_several(values, args) or (has_text and not is_spread(values))


def _index(capture: Session, values: Any, sought: Any, start: Any = None, stop: Any = None) -> Any:
    return _first(capture, values, sought, list(range(len(values)))[start:stop])


def _first(capture: Session, values: Any, sought: Any, places: list[int]) -> Any:
    if not places:
        said = "tuple.index(x): x not in tuple" if isinstance(values, tuple) else _missing(values, sought)
        _fail(capture, said)
    place, *others = places
    is_there = same(capture, values[place], sought)
    return if_exp(is_there, lambda: place, lambda: _first(capture, values, sought, others))


def _missing(values: Any, sought: Any) -> Any:
    return repr_(sought) + f" is not in {type(values).__name__}"


def _fail(capture: Session, said: Any) -> NoReturn:
    emit_raise(capture, ValueError(said))
    raise Diverged


def _count(capture: Session, values: Any, sought: Any) -> Any:
    total: Any = 0
    for value in values:
        total = total + if_exp(same(capture, value, sought), lambda: 1, lambda: 0)
    return total


def _remove(capture: Session, values: Any, sought: Any) -> None:
    capture.shelf.append(values)  # each path finds it as it was, be it nobody else's
    try:
        _remove_from(capture, values, sought, 0)
    finally:
        capture.shelf.pop()


def _remove_from(capture: Session, values: Any, sought: Any, place: int) -> None:
    def remove() -> None:
        note_contents(values)
        del values[place]

    if place == len(values):
        kind = type(values).__name__
        _fail(capture, _missing(values, sought) if kind == "deque" else "list.remove(x): x not in list")
    if_exp(same(capture, values[place], sought), remove, lambda: _remove_from(capture, values, sought, place + 1))


METHODS: dict[str, Callable[..., Any]] = {"index": _index, "count": _count, "remove": _remove}
