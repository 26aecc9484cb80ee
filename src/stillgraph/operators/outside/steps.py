"""Steps of a program that act on the world outside: how a call becomes one, and what it gives."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from types import BuiltinMethodType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_library
from stillgraph.operators.outside.handed_out import stored
from stillgraph.program.acts import Calling, Logging, Warning_
from stillgraph.program.operations import act
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.outcome import Outcome

Act = Callable[[Session, Any, tuple[Any, ...], dict[str, Any]], Any]
Part = Callable[[Session, Any], Any]
Result = Callable[[Session, Any, str], Any]


def emit(capture: Session, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any], part: Part) -> Any:
    """Record a step; gives its node."""
    capture.side_effects.before_act()
    given = tuple(part(capture, value) for value in args)
    return recorded(capture, step, given, {name: part(capture, value) for name, value in kwargs.items()})


def recorded(capture: Session, step: Any, given: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Record a step with these arguments; gives its node."""
    with capture.calling_python(_listeners(step), repr(step)):
        return capture.emit("call_function", act, (step, given, keywords), {})


def _listeners(step: Any) -> list[Any]:
    """The user's code that a step leads to: the handlers of a logger, and those of the loggers above it."""
    if isinstance(step, Warning_):
        return [] if isinstance(warnings.showwarning, BuiltinMethodType) else [warnings.showwarning]
    if not isinstance(step, Logging):
        return []
    receiver = getattr(step.function, "__self__", logging.root)
    logger = receiver.logger if isinstance(receiver, logging.LoggerAdapter) else receiver
    found: list[Any] = [receiver, logging.getLogRecordFactory()]
    while isinstance(logger, logging.Logger):
        found += (*logger.filters, *logger.handlers)
        for handler in logger.handlers:
            found += (*handler.filters, handler.formatter, getattr(handler, "stream", None))
        logger = logger.parent
    return [each for each in found if not is_library(_file_of(type(each)))]


def _file_of(kind: type) -> str:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")


def nothing(capture: Session, node: Any, what: str) -> None:
    """Of a step that gives nothing."""
    return


def number(capture: Session, node: Any, what: str) -> Any:
    """Of a step that gives a whole number."""
    return capture.fresh_result(int, node)


def anything(capture: Session, node: Any, what: str) -> Outcome:
    """Of a step that may give anything, with which the program can do nothing."""
    return Outcome(what)


def changes_files(result: Result) -> Act:
    """A function that changes what is on a disk or runs something; the code may go on to read that."""

    def staged(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        capture.before_raise(None)
        node = emit(capture, Calling(function), args, kwargs, stored)
        capture.side_effects.acted = True
        return result(capture, node, name_of(function))

    return staged


def of_writer(result: Result) -> Act:
    """A method of an object that writes to a file it knows; the object has to be there at every call."""
    staged = changes_files(result)

    def written(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        writer = getattr(function, "__self__", None)
        if writer is None or not capture.is_outer(writer):
            message = f"{name_of(function)}, of a writer that is made inside the function, is called"
            raise refuse("SG305", message, location=here(), hint="Make the writer outside the function.")
        return staged(capture, function, args, kwargs)

    return written


NOT_AN_ACT = object()
"""What an `Act` gives for a call that is none: it goes the way of any other."""


def name_of(function: Any) -> str:
    """What a function is called in messages."""
    module = getattr(function, "__module__", None)
    name = str(getattr(function, "__qualname__", function))
    shown_module = {"posix": "os", "nt": "os", "_warnings": "warnings"}.get(str(module), module)
    return name if module in (None, "builtins", "pathlib") else f"{shown_module}.{name}"
