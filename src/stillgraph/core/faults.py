"""Exceptions of this package: how they are told from what the user's code raises, and how faults are reported."""

from __future__ import annotations

import dis
import os
import traceback
from types import CodeType, TracebackType
from typing import Any

from stillgraph.core.diagnostics import StillgraphError
from stillgraph.core.files import folder_of_ours, is_ours, is_users
from stillgraph.core.interrupts import is_interrupt
from stillgraph.core.rewritten import is_rewritten
from stillgraph.core.tracebacks import entries_of


def is_signal(error: BaseException) -> bool:
    """Whether a capture ends or begins anew by this exception."""
    return not isinstance(error, Exception) and str(type(error).__module__).startswith("stillgraph.")


def unwinds(error: BaseException) -> bool:
    """Whether an exception goes its way past all that handles errors: a signal of ours, or Ctrl-C and the like."""
    return is_signal(error) or is_interrupt(error)


def ends_capture(error: BaseException) -> bool:
    """Whether an exception is none of the user's code: with it, a capture ends or begins anew."""
    return isinstance(error, StillgraphError) or unwinds(error) or is_fault(error)


def is_fault(error: BaseException) -> bool:
    """Whether an exception is one that only our own code raises, for a reason that nobody foresaw.

    What the user's code raises may come out of a line of ours as well: an operator does for it what it would do. That
    is done from a line of the user's, so an exception behind which there is none is ours. And it is never because of a
    name that stands in our own code.
    """
    entries = list(entries_of(_TRACEBACK.__get__(error)))
    if not entries or not is_ours(_file(entries[-1])) or not isinstance(error, Exception):
        return False
    if isinstance(error, (AssertionError, NotImplementedError)):
        return True
    instruction = _instruction(entries[-1])
    if isinstance(error, _OF_THE_PROCESS) or instruction == "RAISE_VARARGS":  # the latter: in the place of Python
        return False
    lines = [index for index, each in enumerate(entries) if is_rewritten(each.tb_frame.f_code) or is_users(_file(each))]
    if not lines or any(_runs(each.tb_frame.f_code) for each in entries[lines[-1] + 1 :]):
        return True
    names = isinstance(error, AttributeError) and instruction in ("LOAD_ATTR", "LOAD_METHOD")
    if names or (isinstance(error, NameError) and str(instruction).startswith("LOAD_")):
        return True
    return os.sep + "passes" + os.sep in _file(entries[-1])


def is_own(error: BaseException) -> bool:
    """Whether an exception that leaves a capture is the function's own, rather than one of this package's."""
    return not ends_capture(error)


_TRACEBACK: Any = vars(BaseException)["__traceback__"]  # whatever an exception's class makes of it

_OF_THE_PROCESS = (RecursionError, MemoryError, Warning)
"""What comes over a line of ours by no fault of its own."""


def runs_users_code(error: BaseException) -> bool:
    """Whether an exception has come by code of the user's since it was raised, as far as its traceback goes."""
    frames = [entry.tb_frame.f_code for entry in entries_of(_TRACEBACK.__get__(error))]
    return any(is_users(code.co_filename) or _runs(code) for code in frames)


def is_raised_by_ours(error: BaseException) -> bool:
    """Whether a ``raise`` of ours has raised an exception: in the place of Python, unless it is a fault."""
    innermost = _innermost(error)
    if innermost is None or not is_ours(_file(innermost)):
        return False
    return _instruction(innermost) == "RAISE_VARARGS"


def _runs(code: CodeType) -> bool:
    """Whether code runs the user's, instruction by instruction: what one of these does is done from the user's line."""
    folder, file = os.path.split(code.co_filename)
    return _RUNNING.get(code.co_name) == file and (folder + os.sep).startswith(folder_of_ours("bytecode"))


_RUNNING = {"_steps": "interpreter.py", "run_in": "resuming.py", "resume": "resuming.py"}


def _instruction(entry: TracebackType) -> str:
    return dis.opname[entry.tb_frame.f_code.co_code[entry.tb_lasti]]


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def arises_in_ours(error: BaseException) -> bool:
    """Whether a line of our own has raised an exception, rather than one of the user's or of torch's."""
    innermost = _innermost(error)
    return innermost is not None and is_ours(innermost.tb_frame.f_code.co_filename)


def told(error: BaseException) -> str:
    """A fault in a sentence: what was raised, and where."""
    innermost = _innermost(error)
    where = ""
    if innermost is not None:
        path = innermost.tb_frame.f_code.co_filename.split(os.sep)
        begin = len(path) - 1 - path[::-1].index("stillgraph") if "stillgraph" in path else 0
        where = f" at {'/'.join(path[begin:])}:{innermost.tb_lineno}"
    message = f": {error}" if str(error) else ""
    return f"an internal error of stillgraph ({type(error).__name__}{message}{where})"


def traceback_of(error: BaseException) -> str:
    """The whole traceback as text, for the log."""
    return "".join(traceback.format_exception(error))


def _innermost(error: BaseException) -> TracebackType | None:
    found: TracebackType | None = _TRACEBACK.__get__(error)
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    return found
