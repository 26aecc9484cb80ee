"""Taking apart what a value holds, for the targets of an assignment: only the run may know of how many elements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.consumers.comprehensions import list_of
from stillgraph.operators.containers.drawing import drawn
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.control_flow.generators import is_fresh
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, is_lost
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.values.text import StagedText

_TOO_FEW = "not enough values to unpack (expected {}, got {})"


def unpack(value: Any, before: int, after: int | None = None) -> Any:
    """The values for the elements of a target.

    Args:
        value: what is taken apart.
        before: how many elements the target has, or has before the one with a star.
        after: how many it has behind that one, which takes a list of the rest; None where no element has a star.

    Raises:
        ValueError: there are too few or too many.
    """
    capture = session()
    if capture is None:
        return value if after is None else _with_rest(value, before, after)
    if isinstance(value, Unjoined) and not is_lost(value):
        return value.either(lambda one: _as_tuple(unpack(one, before, after), before, after))
    capture.settling.require_current(value)
    value = drawn(value)
    if after is not None and is_fresh(value):
        value = list_of(value, lambda element: element)
    value = _counted(value, before if after is None else None)
    if not lists.is_spread(value):
        return value if after is None else _with_rest(value, before, after)
    capture.before_risk()
    least = before + (after or 0)
    expected = str(least) if after is None else f"at least {least}"
    _require(capture, value, operator.ge, least, lambda: _too_few(capture, value, expected))
    if after is None:
        _require(capture, value, operator.le, least, lambda: _too_many(capture, least))
        return tuple(lists.at(capture, value, index) for index in range(before))
    alone = [lists.at(capture, value, index) for index in range(before)]
    rest = lists.at(capture, list(value), slice(before, -after if after else None))
    return (*alone, rest, *(lists.at(capture, value, index - after) for index in range(after)))


def _as_tuple(value: Any, before: int, after: int | None) -> tuple[Any, ...]:
    """The values for the elements of a target, where they are one or others by the path: on each one as many."""
    if not (hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")):
        [] = value  # Python's own error: that of a star has another text
    elements = (*value,)
    if after is None and len(elements) > before:
        raise ValueError(f"too many values to unpack (expected {before})")
    if after is None and len(elements) < before:
        raise ValueError(_TOO_FEW.format(before, len(elements)))
    return elements


def _counted(value: Any, wanted: int | None) -> Any:
    """A list of what has as many elements as only the run knows; of an iterator one more is drawn than is wanted."""
    if lists.is_spread(value):
        return value
    sequence = as_sequence(value)
    if sequence is None or sequence.is_known:
        return value
    start, made = sequence.at_index, list_of(sequence, lambda element: element)
    if sequence.once and wanted is not None:
        capture, after = session(), sequence.at_index
        assert capture is not None
        more = lists.length(capture, made) > wanted
        sequence.advance(if_exp(more, lambda: start + wanted + 1, lambda: after))
    return made


def _require(
    capture: Session, value: Any, holds: Callable[[Any, Any], Any], count: int, fail: Callable[[], NoReturn]
) -> None:
    branch(capture, holds(lists.length(capture, value), count), lambda: None, fail, (), ())


def _too_few(capture: Session, value: Any, expected: str) -> NoReturn:
    emit_raise(capture, ValueError(StagedText(capture, _TOO_FEW, (expected, lists.length(capture, value)))))
    raise Diverged


def _too_many(capture: Session, expected: int) -> NoReturn:
    emit_raise(capture, ValueError(f"too many values to unpack (expected {expected})"))
    raise Diverged


def _with_rest(value: Any, before: int, after: int) -> tuple[Any, ...]:
    [*items] = value  # Python itself says of what there are no elements
    if len(items) < before + after:
        raise ValueError(_TOO_FEW.format(f"at least {before + after}", len(items)))
    stop = len(items) - after
    return (*items[:before], items[before:stop], *items[stop:])
