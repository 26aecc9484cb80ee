"""Comparisons by identity: `is` and `is None`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.dispatch import eq
from stillgraph.operators.objects.booleans import not_
from stillgraph.operators.objects.changes import refuse_copy
from stillgraph.program.facts.info import info
from stillgraph.trace.capture.concretization import ask_for_the_object
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.guards.one_object import is_told_by_value
from stillgraph.trace.heap.identities import Origin
from stillgraph.trace.values.caught import Caught, CaughtPart
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.numbers import StagedBool, StagedNumber, is_number, kinds_of
from stillgraph.trace.values.text import StagedText


def is_none(value: Any) -> Any:
    """``value is None``; a variable condition for a place that is ``None`` on some path."""
    capture = session()
    if capture is not None and isinstance(value, Unjoined):
        return value.asks(is_none)
    return value is None if capture is None else capture.absence(value)


def is_(left: Any, right: Any) -> Any:
    """``left is right``; a variable condition for what is another object on each path."""
    capture = session()
    if capture is not None:
        left, right = capture.original(left), capture.original(right)
        if is_told_by_value(left) and is_told_by_value(right):
            capture.values_compared = True
    if capture is None or left is right:
        return left is right
    if left is None or right is None:
        return is_none(right if left is None else left)
    pairs = ((left, right), (right, left))
    unjoined = next((pair for pair in pairs if isinstance(pair[0], Unjoined)), None)
    if unjoined is not None:  # before the flags of the other: it may be that one on its path
        return unjoined[0].asks(functools.partial(is_, unjoined[1]))
    for value, other in pairs:
        if capture.may_be_none(value) and not isinstance(other, torch.Tensor):
            return capture.with_or_without(value, functools.partial(is_, other))
        origin = value if isinstance(value, Origin) else capture.identities.origins.get(id(value))
        if origin is not None:
            left_side, right_side = (_side_is(capture, origin, index, other) for index in (0, 1))
            return select(capture, origin.flag, left_side, right_side)
        refuse_copy(capture, value, other)
        if isinstance(value, CaughtPart) and value.what == "type" and isinstance(other, type):
            return _emit_is(capture, capture.emit("call_function", type, (value.error,), {}), other)
        if isinstance(value, StagedBool) and isinstance(other, bool):
            return value if other else not_(value)
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor) and (_is_joined(left) or _is_joined(right)):
        return _emit_is(capture, left, right)
    if isinstance(left, Caught) or isinstance(right, Caught):
        return _is_caught(capture, left, right)
    if isinstance(left, StagedBool) and isinstance(right, StagedBool):
        return eq(left, right)
    if any(_may_be_same(capture, value, other) for value, other in ((left, right), (right, left))):
        for value in (left, right):
            ask_for_the_object(capture, value)
        message = "whether two values are one object is asked, of which only the run knows what they are"
        raise refuse("SG301", message, location=here(), hint="Compare them with ==.")
    return False


def _emit_is(capture: Session, left: Any, right: Any) -> Any:
    return capture.fresh_result(bool, capture.emit("call_function", operator.is_, (left, right), {}))


def _side_is(capture: Session, origin: Origin, index: int, other: Any) -> Callable[[], Any]:
    """Whether another object is what a container stands for where a flag says so; asked there."""

    def answer() -> Any:
        if origin.older[index]:
            return is_((origin.left, origin.right)[index], other)
        return _stands_for(capture, other, origin.joined)

    return answer


def _stands_for(capture: Session, value: Any, made: Any) -> Any:
    """Whether a container is a new one that a path has made, and is told to be."""
    origin = value if isinstance(value, Origin) else capture.identities.origins.get(id(value))
    if value is made or origin is None:
        return value is made or refuse_copy(capture, made, value)

    def answer(index: int) -> Any:
        side = (origin.left, origin.right)[index] if origin.older[index] else origin.joined
        return refuse_copy(capture, made, side) if side is origin.joined else _stands_for(capture, side, made)

    return select(capture, origin.flag, functools.partial(answer, 0), functools.partial(answer, 1))


def _may_be_same(capture: Session, value: Any, other: Any) -> bool:
    """Whether Python may have one object for a value that only the run knows and for another."""
    if isinstance(value, tuple):  # what paths leave of a tuple, or a loop, is made anew
        alike = type(value) is type(other) and len(value) == len(other)
        made_anew = value in capture.identities.tuples or holds_staged(value)
        return alike and not capture.is_outer(value) and made_anew
    if isinstance(value, StagedNumber):
        return is_number(other) and not set(kinds_of(value)).isdisjoint(kinds_of(other))
    return isinstance(value, StagedText) and isinstance(other, (str, StagedText))


def _is_caught(capture: Session, left: Any, right: Any) -> Any:
    """Whether an exception that the program has caught is another object.

    Raises:
        CaptureError: that is an exception which the call has made: what the program raises is a copy of it.
    """
    for side in (left, right):
        if isinstance(side, Caught):
            continue
        if not isinstance(side, BaseException):
            return False
        if not capture.was_there(side):
            message = f"whether a caught exception is this {type(side).__name__} is only known at run time"
            raise refuse("SG301", message, location=here(), hint=_OTHER_CLASS)
    return _emit_is(capture, left, right)


_OTHER_CLASS = (
    "Give it a class of its own and a handler for that, or make the exception outside of the function: "
    "one that is there before the call is raised as it is."
)


def _is_joined(value: torch.Tensor) -> bool:
    """Whether a tensor stands for what a branch or loop leaves, which may be a tensor from before it."""
    return info(value).is_joined
