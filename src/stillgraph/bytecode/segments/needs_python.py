"""Why an instruction is Python's: for what it calls, what it works on, or what is gone behind it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.machine.table import MOVES
from stillgraph.bytecode.segments.called import called, counts_results, keeps_results, shows_parcels
from stillgraph.bytecode.segments.dropping import dropped
from stillgraph.bytecode.segments.leaving import kind_of
from stillgraph.bytecode.segments.lifetimes import cleans_up, ends_with_it
from stillgraph.bytecode.segments.whys import Why, why_of
from stillgraph.core.files import is_users
from stillgraph.core.parcel import Parcel, opened
from stillgraph.operators.outside.foreign import may_change_what_was_there
from stillgraph.trace.capture.session import session
from stillgraph.trace.effects.locks import is_lock, pairs
from stillgraph.trace.fakes.torch_modes import enters_or_leaves
from stillgraph.trace.values.callables import contents

if TYPE_CHECKING:
    from stillgraph.bytecode.segments.segments import Segment

CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})


def why_python(segment: Segment, frame: Frame, each: Instruction) -> Why | None:
    """Why Python carries out an instruction, where that shows from its operands."""
    if each.name == "RAISE_VARARGS" and not each.argument:
        return why_raised_again()
    if each.name == "BEFORE_WITH" and is_users(frame.code.co_filename):
        return why_entered(contents(frame.stack[frame.depth - 1]))
    return why_called(segment, frame, each) if each.name in CALLS else None


def why_called(segment: Segment, frame: Frame, each: Instruction) -> Why | None:
    """Why Python makes a call; None where the segment does."""
    function = opened(called(frame, each))
    if shows_parcels(frame, function):
        return why_of("variables", function.__name__)
    taking = _inner(function)
    if pairs(taking) and _was_there(taking.__self__):
        return why_of("changes", *_named(taking))
    if may_change_what_was_there(function):
        return why_of("changes", *_named(function))
    if counts_results(segment.frames, function):
        return why_of("cache", function.__name__)
    if not segment.can_end:
        return None
    if segment.is_residual(function):
        return why_of("outside", getattr(function, "__name__", type(function).__name__))
    if enters_or_leaves(function):
        return why_of("mode", function.__name__)
    if keeps_results(frame, each, function):
        return why_of("cache", function.__name__)
    return None


def _inner(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def why_entered(manager: Any) -> Why | None:
    """Why Python enters a block: a lock keeps other threads out of what is read and written inside.

    A program that takes it would read all that it needs before, and write behind.
    """
    manager = opened(manager)
    if is_lock(manager) and _was_there(manager):
        return why_of("lock", kind_of(manager))
    return None


def why_raised_again() -> Why | None:
    """Why Python carries out a bare ``raise``: the call was handling an exception before the segment began."""
    capture, error = session(), sys.exc_info()[1]
    is_from_before = capture is not None and any(error is each for each in capture.handlers.handled_before)
    return only_python(error) if is_from_before else None


def _was_there(value: Any) -> bool:
    capture = session()
    return capture is not None and capture.elsewhere.was_there(value)


def _named(function: Any) -> tuple[str, str]:
    receiver = getattr(function, "__self__", None)
    return getattr(function, "__name__", "it"), "anything" if receiver is None else kind_of(receiver)


def only_python(value: Any) -> Why:
    """Why Python works with a value that is opaque."""
    if getattr(value, "__name__", None) == "__exit__":
        return why_of("leaves")
    return why_of("opaque", kind_of(value))


# ---- what is gone behind it
def let_go(segment: Segment, frame: Frame, each: Instruction) -> Iterator[Any]:
    """What an instruction may take the last reference to, where something is done when it is gone."""
    for value in map(contents, _emptied(segment, frame, each)):
        if is_let_go(segment, value):
            yield value.value
    if each.name not in MOVES:
        yield from filter(cleans_up, dropped(frame, each))


def _emptied(segment: Segment, frame: Frame, each: Instruction) -> list[Any]:
    """The variables that lose what they hold."""
    if each.name == "RETURN_VALUE":
        return frame.slots if segment.can_end else []
    if each.name == "POP_TOP":
        return [frame.stack[frame.depth - 1]]
    return [frame.slots[each.argument]] if each.name in ("STORE_FAST", "DELETE_FAST") else []


def is_let_go(segment: Segment, value: Any) -> bool:
    """Whether something is done when a variable's value is gone, and no other variable goes on to hold it."""
    return type(value) is Parcel and ends_with_it(value.value) and not _is_held_twice(segment, value)


def _is_held_twice(segment: Segment, value: Parcel) -> bool:
    held = [each for frame in segment.frames for each in frame.values(range(len(frame.slots))) if each is value]
    return len(held) > 1
