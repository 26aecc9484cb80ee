"""Tracebacks as Python would have made them: what a handler of the user's sees has no frame of the interpreter's."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, TracebackType
from typing import Any, NoReturn

from stillgraph.core.files import folder_of_ours
from stillgraph.core.rewritten import HELD, is_block, is_rewritten, resumes
from stillgraph.core.tracebacks import entries_of

_OURS = tuple(map(folder_of_ours, ("bytecode", "operators")))


def clean(error: BaseException) -> None:
    """Leave out of an exception's traceback the frames that interpret, and those that only bind arguments.

    The end of the traceback stays the very object that it is, as where Python raises an exception again.
    """
    entries = list(entries_of(error.__traceback__))
    trace: TracebackType | None = None
    for each, after in zip(reversed(entries), [None, *reversed(entries[1:])]):
        if _interprets(each.tb_frame.f_code, None if after is None else after.tb_frame.f_code):
            continue
        same = each.tb_next is trace
        trace = each if same else TracebackType(trace, each.tb_frame, each.tb_lasti, each.tb_lineno)
    BaseException.with_traceback(error, trace)


def raise_again(error: BaseException, line: Callable[[list[Any]], Any] | None = None) -> NoReturn:
    """Raise an exception as if it had not been caught: it, and those being handled, keep what is behind them.

    Python's ``raise`` makes the exception that is being handled its context, and ends a circle where one comes of that.

    Args:
        error: the exception.
        line: raises what it takes from the end of a list; without one, the exception is raised here.
    """
    before, behind = _CONTEXT.__get__(error), _in_front_of(error)
    try:
        if line is not None:
            line([error])
        raise error
    finally:
        _CONTEXT.__set__(error, before)
        if behind is not None:
            _CONTEXT.__set__(behind, error)
        del error, before, behind  # the traceback leads here


@contextlib.contextmanager
def unchanged(errors: Sequence[BaseException]) -> Iterator[None]:
    """Put back where exceptions come from: a capture raises again what the call is handling, and is no part of it."""
    before = [(error, error.__traceback__, _CONTEXT.__get__(error)) for error in errors]
    try:
        yield
    finally:
        for error, trace, context in before:
            BaseException.with_traceback(error, trace)
            _CONTEXT.__set__(error, context)


_CONTEXT: Any = vars(BaseException)["__context__"]  # as Python has it, whatever an exception's class says


def _in_front_of(error: BaseException) -> BaseException | None:
    """The exception whose context is this one, if there is one among those being handled and what is behind them."""
    passed: set[int] = set()
    each = sys.exc_info()[1]
    while each is not None and id(each) not in passed:
        after = _CONTEXT.__get__(each)
        if after is error:
            return each
        passed.add(id(each))
        each = after
    return None


def _interprets(code: CodeType, called: CodeType | None) -> bool:
    if code.co_filename.startswith(_OURS) or resumes(code):
        return True
    is_entry = is_rewritten(code) and not is_block(code) and HELD in code.co_varnames
    return is_entry and called is not None and called.co_filename.startswith(_OURS)
