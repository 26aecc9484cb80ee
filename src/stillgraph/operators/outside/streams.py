"""Streams and files that are written to: standard output, streams in memory, open files."""

from __future__ import annotations

import io
import sys
import weakref
from typing import Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.outside.handed_out import stored
from stillgraph.operators.outside.steps import NOT_AN_ACT, Result, emit, nothing, number
from stillgraph.program.acts import Method, StandardStream
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.containers import holds_staged

_WRITES: dict[str, Result] = {
    "write": number,
    "writelines": nothing,
    "truncate": number,
    "flush": nothing,
    "close": nothing,
}
_ASKS = frozenset({"isatty", "fileno", "readable", "writable", "seekable", "__enter__", "__exit__"})


def standard_stream(receiver: Any) -> str | None:
    """Which of Python's standard streams something is."""
    return next((name for name in ("stdout", "stderr") if getattr(sys, name) is receiver), None)


def of_stream(capture: Session, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a stream: one that writes becomes a step, if the stream is one that each call finds."""
    receiver, name = method.__self__, method.__name__
    standard = standard_stream(receiver)
    if name not in _WRITES:
        if capture.side_effects.acted and name not in _ASKS and id(receiver) not in capture.own_streams:
            refuse_reading(f"{type(receiver).__name__}.{name}")
        if name not in _ASKS and standard is None and capture.is_outer(receiver):
            called = f"{type(receiver).__name__}.{name} is called of a stream from outside"
            message = f"{called}, whose contents no guard follows"
            raise refuse("SG305", message, location=here(), hint="Read it outside, and pass what it gives.")
        return NOT_AN_ACT
    if standard is None and not capture.is_outer(receiver):
        return _of_own_stream(capture, method, args)
    capture.before_raise(None)
    step = Method(weakref.ref(receiver), name) if standard is None else StandardStream(standard, name)
    node = emit(capture, step, args, kwargs, stored)
    capture.side_effects.acted = capture.side_effects.acted or standard is None
    return _WRITES[name](capture, node, f"{type(receiver).__name__}.{name}")


def _of_own_stream(capture: Session, method: Any, args: tuple[Any, ...]) -> Any:
    kind = type(method.__self__).__name__
    if id(method.__self__) not in capture.own_streams and method.__name__ not in ("close", "flush"):
        message = f"a {kind} is written to that the function gets from elsewhere"
        raise refuse("SG305", message, location=here(), hint="Hand the stream in, or write to it outside.")
    if any(map(holds_staged, args)):
        raise refuse("SG302", f"a {kind} is filled with what only the run knows", location=here())
    return NOT_AN_ACT


def note_stream(capture: Session, result: Any) -> None:
    """Told what a call gives: streams in memory that the function makes are its own affair."""
    if isinstance(result, (io.StringIO, io.BytesIO)):
        capture.own_streams[id(result)] = result


def may_print_to(capture: Session, file: Any) -> bool:
    """Whether the program can print to a stream: one of Python's, or of a file that was there before the call."""
    standard = file is None or standard_stream(file) is not None
    return standard or (isinstance(file, io.IOBase) and capture.is_outer(file))


def refuse_reading(what: str) -> NoReturn:
    """Refuse to read what a step writes."""
    message = f"{what} reads what the program writes when it runs"
    raise refuse("SG305", message, location=here(), hint="Read it outside the static function, after the call.")
