"""What ends a program from outside, such as Ctrl-C: told from what the user's code raises by where it was raised."""

from __future__ import annotations

import dis
import functools
import signal
import sys
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any

from stillgraph.core.tracebacks import entries_of


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception comes from outside of the code that it leaves: of a signal, or sent to the thread.

    Python raises such a one wherever it stands. What code raises by itself, it raises in a ``raise``, or a generator
    where something is thrown into it; and `sys.exit` is called. An `Exception` is none: code may handle each.
    """
    if isinstance(error, (Exception, GeneratorExit)):  # the latter: a generator is being closed
        return False
    entries = list(entries_of(_TRACEBACK.__get__(error)))
    if not entries:
        return False
    raised = _instruction(entries[-1]) in _RAISING or _calls_exit(error, entries[-1])
    return not raised or not _codes_of_handlers().isdisjoint(each.tb_frame.f_code for each in entries)


_TRACEBACK: Any = vars(BaseException)["__traceback__"]  # whatever an exception's class makes of it

_RAISING = frozenset({"RAISE_VARARGS", "RERAISE", "YIELD_VALUE", "RETURN_GENERATOR", "SEND"})
"""Instructions at which Python looks for no signals, and code raises: the last three, where it is thrown into."""


_CACHE = dis.opmap["CACHE"]


def _calls_exit(error: BaseException, entry: TracebackType) -> bool:
    """Whether an exception is that of `sys.exit`, which has no frame of its own."""
    if not (isinstance(error, SystemExit) and _instruction(entry).startswith("CALL")):
        return False
    space = entry.tb_frame.f_globals
    return any(name == "exit" or space.get(name) is sys.exit for name in entry.tb_frame.f_code.co_names)


def _instruction(entry: TracebackType) -> str:
    code, at = entry.tb_frame.f_code.co_code, entry.tb_lasti
    while code[at] == _CACHE:  # which stands behind an instruction, and is a part of it
        at -= 2
    return dis.opname[code[at]]


def _codes_of_handlers() -> set[CodeType]:
    """The code of the functions that Python calls for signals."""
    found = map(_code, map(signal.getsignal, signal.valid_signals()))
    return {each for each in found if each is not None}


def _code(handler: Any) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not isinstance(handler, (FunctionType, MethodType)):
        handler = vars(type(handler)).get("__call__")
    function = handler.__func__ if isinstance(handler, MethodType) else handler
    return function.__code__ if isinstance(function, FunctionType) else None
