"""Tracebacks that show the user's lines: frames made for places, and those of code that is in nobody's way left out."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import linecache
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from stillgraph.core.files import is_ours
from stillgraph.core.location import Location

SWITCH = "STILLGRAPH_FULL_TRACEBACK"


def full_traceback() -> bool:
    """Whether the user wants errors as they were raised: the environment says ``STILLGRAPH_FULL_TRACEBACK=1``."""
    return os.environ.get(SWITCH, "") not in ("", "0")


def entries_of(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, the outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def chained(entries: Sequence[TracebackType | Location]) -> TracebackType | None:
    """A traceback of these entries, the outermost first; a place gets a frame that stands on its line.

    Such a frame has no variables. Its globals are those of the module of that file, where one is loaded. It keeps the
    frames around this call alive: those are to hold nothing that should be freed before it.
    """
    trace: TracebackType | None = None
    at: TracebackType | None = None
    try:
        for each in reversed(entries):
            at = _standing_at(each) if isinstance(each, Location) else each
            trace = TracebackType(trace, at.tb_frame, at.tb_lasti, at.tb_lineno)
        return trace
    finally:
        del trace, at, entries


def _standing_at(place: Location) -> TracebackType:
    """The traceback of an error raised on a line of the user's, without the frame that calls it."""
    try:
        FunctionType(_raising(place), _namespace(place.file))()
    except TypeError as error:
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None, "both were called"
        return error.__traceback__.tb_next
    raise AssertionError("None cannot be raised")


def _raising(place: Location) -> CodeType:
    """The code of a function that raises, ``raise None``, and has the name, the line and the columns of a place."""
    known = place.column is not None
    open_end = known and place.end_column is None
    span: dict[str, Any] = {
        "lineno": place.line,
        "col_offset": place.column if known else -1,
        "end_lineno": place.line + open_end,
        "end_col_offset": place.end_column or 0 if known else -1,
    }
    statement = ast.Raise(ast.Constant(None, **span), None, **span)
    first = _first_line(place)
    last = place.line + open_end
    header: dict[str, Any] = {"lineno": first, "col_offset": 0, "end_lineno": last, "end_col_offset": 0}
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    name = place.function or "<module>"
    function = ast.FunctionDef(name=name, args=nothing, body=[statement], decorator_list=[], **header)
    code = compile(ast.Module([function], []), place.file, "exec", dont_inherit=True)
    return next(each for each in code.co_consts if isinstance(each, CodeType))


def _first_line(place: Location) -> int:
    """Where the function of a place begins, as far as its text tells: what shows whole functions asks for that."""
    definition = re.compile(rf"\s*(async\s+)?def\s+{re.escape(place.function or '')}\b")
    for number in range(place.line, 0, -1):
        if definition.match(linecache.getline(place.file, number)):
            return number
    return place.line


def _namespace(file: str) -> dict[str, Any]:
    """The globals of the module that a file holds; without one, what every module has."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return vars(module)
    return {"__name__": "<unknown>", "__file__": file, "__builtins__": builtins}


def chain_of(error: BaseException) -> Iterable[BaseException]:
    """An error, then its causes and contexts."""
    found: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            waiting += [each.__cause__, each.__context__]
    return found.values()


def let_go_behind(error: BaseException) -> None:
    """Empty the frames that called those of an error's traceback, as far as they have ended.

    A traceback keeps them, and Python's own would hold nothing but what the user's code does.
    """
    frame: FrameType | None = None
    try:
        for entry in entries_of(error.__traceback__):
            frame = entry.tb_frame.f_back
            while frame is not None:
                _empty(frame)
                frame = frame.f_back
    except RuntimeError:  # it is running, and so are all behind it
        return
    finally:
        del error, frame


def _empty(frame: FrameType) -> None:
    """Empty a frame that has ended; a generator's that only waits would be closed by that."""
    if not frame.f_code.co_flags & _WAITING:
        frame.clear()


_WAITING = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def let_go(error: BaseException, of_all: bool = False) -> None:
    """Empty the frames that an error has gone through: one that leads to the error would live until a collection.

    Args:
        error: what was raised; what it was raised for is gone through too.
        of_all: nobody is going to see it: it loses its traceback. Otherwise only frames of this package's, and of
            `contextlib`'s, are emptied.
    """
    each: BaseException | None = None
    first: TracebackType | None = None
    entry: TracebackType | None = None
    try:
        for each in chain_of(error):
            first = each.__traceback__
            if first is None or not (each is error or is_ours(first.tb_frame.f_code.co_filename)):
                continue  # the caller was handling it
            for entry in entries_of(first):
                file = entry.tb_frame.f_code.co_filename
                if of_all or is_ours(file) or file == contextlib.__file__:
                    with contextlib.suppress(RuntimeError):  # it is running
                        _empty(entry.tb_frame)
            if of_all:
                BaseException.with_traceback(each, None)
    finally:
        del error, each, first, entry
