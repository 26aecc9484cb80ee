"""Errors as the user is to see them: on the user's own lines, without frames of this package's or of torch's inside."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Mapping, Set
from types import CodeType, TracebackType
from typing import ParamSpec, TypeVar

from stillgraph.core.diagnostics import InternalError, StillgraphError, shown_lines
from stillgraph.core.files import is_ours, is_torch, is_written_by_torch
from stillgraph.core.location import Location
from stillgraph.core.rewritten import resumes
from stillgraph.core.tracebacks import chain_of, chained, entries_of, full_traceback
from stillgraph.program.exceptions import reraise

P = ParamSpec("P")
R = TypeVar("R")

PLACES = "__stillgraph_places__"
"""The name among a driver's globals of its table: line -> the user's line, 0 -> where the program begins."""

Places = Mapping[int, Location]


def present(error: BaseException, calling: Set[CodeType] = frozenset()) -> None:
    """Let an error that leaves a call show the user's lines, in its traceback and in those of what led to it.

    A program's driver becomes the lines that were captured. Of what was called below it, the user's own code is left.
    Outside of a driver only frames of this package's go. An error of this package's shows no frames: its text says all.
    Where ``STILLGRAPH_FULL_TRACEBACK`` is set, tracebacks stay as they are, and notes tell which of the user's lines
    those of drivers stand for. An error that shows a fault of this package's stays as it is.

    Args:
        error: what was raised. The bare ``raise`` that is to follow adds no frame.
        calling: the code that calls the user's function: what is raised there, that call has raised.
    """
    if isinstance(error, InternalError):
        return
    if full_traceback():
        _note_lines(error)
        return
    refused = isinstance(error, StillgraphError)
    each: BaseException | None = None
    try:
        for each in chain_of(error):
            if isinstance(each, StillgraphError):
                _present_refusal(each)
            elif each.__traceback__ is not None:
                _present_one(each, calling, refused)
    finally:
        del error, each  # frames that were made hold this one


def _note_lines(error: BaseException) -> None:
    """Note beside each line of a driver's in a traceback what it says, for it is in no file, and the user's line."""
    entry: TracebackType | None = None
    each: BaseException | None = None
    try:
        for each in chain_of(error):
            for entry in entries_of(each.__traceback__):
                lines = _lines(entry) if PLACES in entry.tb_frame.f_globals else ()
                if lines:
                    text = linecache.getline(_file(entry), entry.tb_lineno).strip()
                    head = f'File "{_file(entry)}", line {entry.tb_lineno}: {text}'
                    note = "\n".join([head, "stands for", *shown_lines(lines[-1])])
                    if note not in getattr(each, "__notes__", ()):
                        each.add_note(note)
    finally:
        del error, each, entry  # see `present`


def presenting(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors are `present`ed. Usable as a decorator."""

    @functools.wraps(function)
    def presented(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            present(error)
            raise

    return presented


def without_first(error: BaseException) -> None:
    """Leave out the frame that has just caught an error and is going to let it pass."""
    if not full_traceback() and error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


def _present_refusal(error: StillgraphError) -> None:
    """Leave out where an error of this package's comes from, and what it was on the way to."""
    context = error.__context__
    while context is not None and not _is_the_callers(context):
        context = context.__context__
    error.__context__ = context
    if not isinstance(error, InternalError):
        error.__traceback__ = None


def _is_the_callers(error: BaseException) -> bool:
    """Whether the caller was handling an error already when it made the call."""
    return error.__traceback__ is not None and not is_ours(_file(error.__traceback__))


def _present_one(error: BaseException, calling: Set[CodeType], refused: bool) -> None:
    """Give one error the traceback that it is to show."""
    shown: list[TracebackType | Location] | None = None
    try:
        if not refused:
            shown = _shown(error.__traceback__, calling)
        elif not _is_the_callers(error):
            shown = [each for each in entries_of(error.__traceback__) if _is_the_users(_file(each))]
        if shown is not None:
            error.__traceback__ = chained(shown)
    finally:
        del error, shown  # see `present`


def _shown(trace: TracebackType | None, calling: Set[CodeType]) -> list[TracebackType | Location] | None:
    """The entries and places that a traceback is to show; None where it is to stay as it is."""
    entries = list(entries_of(trace))
    drivers = [index for index, each in enumerate(entries) if PLACES in each.tb_frame.f_globals]
    if not drivers:
        last = entries[-1].tb_frame.f_code
        if is_ours(last.co_filename) and last not in calling:
            return None
        return _without_ours(entries)
    lines = _lines(entries[drivers[-1]])
    for index in reversed(drivers[:-1]):
        if _names_what_it_raises(entries[index + 1]):
            lines = _raised_again(_lines(entries[index]), lines)
    below = [each for each in entries[drivers[-1] + 1 :] if _is_the_users(_file(each)) and not _goes_on(each)]
    known = {(place.file, place.line) for place in lines}
    while below and (_file(below[0]), below[0].tb_lineno) in known:  # made for the same line, see `program.acts`
        del below[0]
    return [*_without_ours(entries[: drivers[0]]), *lines, *below]


def _lines(entry: TracebackType) -> tuple[Location, ...]:
    """The user's lines that a line of a driver stands for, the outermost first."""
    places: Places = entry.tb_frame.f_globals[PLACES]
    location = places.get(entry.tb_lineno) or places.get(0)
    return () if location is None else (*location.callers, location)


def _names_what_it_raises(entry: TracebackType) -> bool:
    """Whether an entry is that of ``raise error`` in a handler: a traceback shows its line, not that of ``raise``."""
    frame = entry.tb_frame
    return frame.f_code is reraise.__code__ and bool(frame.f_locals["named"])


def _raised_again(again: tuple[Location, ...], before: tuple[Location, ...]) -> tuple[Location, ...]:
    """The lines of an exception that a handler raises once more: it had come as far as the handler's function."""
    return (*again, *before[len(again) - 1 :])


def _without_ours(entries: list[TracebackType]) -> list[TracebackType | Location]:
    return [each for each in entries if not (is_ours(_file(each)) or _goes_on(each))]


def _goes_on(entry: TracebackType) -> bool:
    """Whether an entry is of what goes on in the user's functions: those have entries of their own."""
    return resumes(entry.tb_frame.f_code)


def _is_the_users(file: str) -> bool:
    return not (is_ours(file) or is_torch(file) or is_written_by_torch(file))


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename
