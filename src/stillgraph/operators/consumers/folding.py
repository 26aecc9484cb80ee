"""Folds: `functools.reduce`, as a loop that may be staged, over what only the run knows the length of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from stillgraph.core.diagnostics import Refusal
from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.conditions.truth import truth_number
from stillgraph.operators.consumers.comprehensions import list_of
from stillgraph.operators.consumers.consumers import is_looped_over, known_or_list
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.loops import for_
from stillgraph.operators.control_flow.trials import only_computed
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.heap.places import MISSING


def fold(function: Callable[[Any, Any], Any], iterable: Any, *initial: Any) -> Any:
    """``functools.reduce``: a loop that may be staged, over a generator or a list of unknown length."""
    if is_looped_over(iterable):
        return _folded(function, iterable, *initial) if initial else _folded_from_first(function, iterable)
    items = known_or_list(iterable)
    if not lists.is_spread(items):
        return functools.reduce(function, items, *initial)
    capture = capturing()
    if not initial:
        branch(capture, truth_number(capture, items), lambda: None, _refuse_nothing, (), ())
        return fold(function, lists.at(capture, items, slice(1, None)), lists.at(capture, items, 0))

    def all_of_them() -> Any:
        # the first is apart: what it makes of a 0 to begin with may be of another type
        first = function(initial[0], lists.at(capture, items, 0))
        return _folded(function, lists.at(capture, items, slice(1, None)), first)

    return if_exp(items, all_of_them, lambda: initial[0])


def _refuse_nothing() -> NoReturn:
    emit_raise(capturing(), TypeError(_EMPTY))
    raise Diverged


_EMPTY = "reduce() of empty iterable with no initial value"
_NONE_YET = object()


def _folded_from_first(function: Callable[[Any, Any], Any], iterable: Any) -> Any:
    """`_folded` that begins with the first element.

    Raises:
        TypeError: there is none.
        Refusal: only the run knows whether there is one, and something is seen of when the function is called.
    """
    before = Context(capturing(), [], []).checkpoint()
    try:
        total = _folded(functools.partial(_after, function), iterable, _NONE_YET)
    except Refusal as refused:
        before.rollback()
        return fold(functools.partial(_unseen, function, refused), list_of(iterable, lambda item: item))
    return _resolved(total, lambda each: each, _refuse_nothing)


def _after(function: Callable[[Any, Any], Any], total: Any, value: Any) -> Any:
    return _resolved(total, lambda each: function(each, value), lambda: value)


def _resolved(total: Any, there: Callable[[Any], Any], missing: Callable[[], Any]) -> Any:
    if isinstance(total, Unjoined):
        return total.either(lambda each: _resolved(each, there, missing))
    return missing() if total is _NONE_YET else there(total)


def _unseen(function: Callable[[Any, Any], Any], refused: Refusal, total: Any, value: Any) -> Any:
    """``function(total, value)``; refused if that does anything that a generator would find, or anybody see."""
    result = only_computed(capturing(), lambda: function(total, value))
    if result is MISSING:
        raise refused
    return result


def _folded(function: Callable[[Any, Any], Any], iterable: Any, total: Any) -> Any:
    """``functools.reduce(function, iterable, total)`` as a loop that may be staged."""

    def add(value: Any) -> None:
        nonlocal total
        total = function(total, value)

    for_(iterable, add, keeps=("total",))
    return total
