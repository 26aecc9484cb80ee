"""Calls of a function that calls itself where only the run knows how often."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from stillgraph.core.diagnostics import Refusal, Side, refuse
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.joined.join_errors import quoted
from stillgraph.trace.control_flow.recursion import (
    Call,
    Given,
    NotATailCall,
    Recursion,
    TailCalls,
    arguments_of,
    as_calls,
    as_loop,
)

Identity = tuple[CodeType, tuple[int, ...]]


def call_recursive(
    capture: Session,
    original: FunctionType,
    function: FunctionType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    before: Callable[[Session, FunctionType], None],
) -> Any:
    """Call a function known to be recursive: the first call stages it, those inside belong to that one.

    ``before`` is to be called with the function before each call of it.

    Raises:
        Restart: the function turned out not to call itself in tail position only.
        CaptureError: what it takes or gives cannot be one type for all calls.
    """
    code = original.__code__
    mine = (code, tuple(map(id, original.__closure__ or ())))  # a local function is another one in each call around it
    signature = inspect.signature(original)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()  # each call gives the same arguments, be they left out or not
    given = dict(bound.arguments)

    def call(values: Given) -> Any:
        before(capture, original)
        complete = inspect.BoundArguments(signature, values)
        return function(*complete.args, **complete.kwargs)

    active = capture.recursions.get(mine)
    if active is not None:
        return _again(active, original, given)
    try:
        if code not in capture.knowledge.not_tail:
            return _loop(capture, mine, call, given)
        return _calls(capture, mine, call, given)
    except NotATailCall as signal:
        raise Restart("not_tail", signal.code) from None
    except JoinFailure as failure:
        if code not in capture.knowledge.not_tail:
            raise Restart("not_tail", code) from None
        raise _refused(original, failure) from failure
    except Refusal:
        if code in capture.knowledge.not_tail:
            raise
        raise Restart("not_tail", code) from None


def _again(active: Recursion | TailCalls, original: FunctionType, given: Given) -> Any:
    try:
        return active.call(given)
    except JoinFailure as failure:
        raise _refused(original, failure) from failure


def _refused(original: FunctionType, failure: JoinFailure) -> BaseException:
    name = original.__name__
    what = ", and the calls differ" if failure.sides else ""
    message = f"'{name}' calls itself where a tensor decides{what}: {failure.message.removesuffix('.')}"
    if failure.place and quoted(failure.place) not in message:
        message = f"{message} (in {quoted(failure.place)})"
    hint = f"Let every call of '{name}' take and return the same kinds of values, or write a loop that fills a list."
    if any(_nests(name, side) for side in failure.sides):
        hint = f"What '{name}' gives grows with each call of itself: write a loop that appends to a list."
    return refuse("SG207", message, location=here(), hint=hint, sides=failure.sides)


def _nests(name: str, side: Side) -> bool:
    """Whether a line puts what a function gives, called by itself, into a tuple, list or dict."""
    text = None if side.location is None else side.location.source_line()
    return text is not None and re.search(rf"[(\[{{,:]\s*(?:self\.)?{name}\(", text) is not None


def _loop(capture: Session, mine: Identity, call: Call, given: Given) -> Any:
    tail = TailCalls(capture, mine[0], arguments_of(given))
    capture.recursions[mine] = tail
    capture.shelf.append(given)  # what was made for the call is older than its body
    try:
        return as_loop(capture, tail, call)
    finally:
        capture.shelf.pop()
        del capture.recursions[mine]


def _calls(capture: Session, mine: Identity, call: Call, given: Given) -> Any:
    def belongs_to(recursion: Recursion | None) -> None:
        if recursion is None:
            del capture.recursions[mine]
        else:
            capture.recursions[mine] = recursion

    capture.shelf.append(given)
    try:
        return as_calls(capture, belongs_to, mine[0].co_name, call, given)
    finally:
        capture.shelf.pop()
