"""What a capture does not see: functions that act outside of the program, called by code that is not interpreted."""

from __future__ import annotations

import inspect
import io
import os
import random
from types import FrameType
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_our_module
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.capture.unseen import PAIRED
from stillgraph.trace.code.chance import CHANCE, CLOCKS, SEEDED, is_by_chance
from stillgraph.trace.code.executed_code import Calls
from stillgraph.trace.code.frames import here
from stillgraph.trace.effects.audits import is_called_back, is_users
from stillgraph.trace.effects.locks import WRITTEN_IN_C


def refuse_unseen(frame: FrameType, function: Any) -> None:
    """To be called before code that is not rewritten calls a function of Python's.

    Raises:
        CaptureError: it would do something outside of the program, now, that each call has to do.
    """
    receiver = getattr(function, "__self__", None)
    if isinstance(receiver, PAIRED):
        _refuse_unseen_paired(frame, function)
        return
    if function in _SPEAKING or (isinstance(receiver, io.IOBase) and _may_matter(receiver, function.__name__)):
        pass
    elif not isinstance(receiver, random.Random) and function not in CLOCKS and not is_by_chance(frame, function):
        return
    if not is_our_module(_asking(frame).f_globals.get("__name__", "")) and is_users(frame):
        what = f"{function.__name__} is called by code that is not rewritten"
        raise refuse("SG305", what, location=here(), hint="Make the call in the static function itself.")


def _may_matter(stream: io.IOBase, method: str) -> bool:
    """Whether it may matter outside of the program what a method does to a stream."""
    capture = session()
    if capture is None or capture.elsewhere.was_there(stream):
        return True
    is_cleaned_up = method == "close" and capture.executed.refused is not None
    return not (isinstance(stream, io.StringIO) or is_cleaned_up)


def refuse_users(capture: Session, frame: FrameType) -> None:
    """To be called before code runs for the first time that is not interpreted.

    Raises:
        CaptureError: it is the user's: C code or a library has called it. It would see what stands for values that
            only the run knows, and what it does would not be part of the program.
    """
    capture.unseen.before_code(frame)
    code = frame.f_code
    if capture.unseen.is_left_alone or capture.is_rewritten(code) or not is_called_back(frame):
        return
    is_body = not code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "<module>"
    if is_body or code.co_name == "__hash__" or capture.unseen.is_recorded(frame):
        return  # also what is asked for wherever containers go, and a function with a gradient of its own
    name = "a lambda" if code.co_name == "<lambda>" else code.co_name
    what = f"{name} is called back by {_caller(frame)}"
    raise refuse("SG305", what, location=here(), hint="Make the call in the static function itself.")


def _caller(frame: FrameType) -> str:
    """What has called the user's code, in words."""
    caller = frame.f_back
    module = "" if caller is None else str(caller.f_globals.get("__name__"))
    if caller is None or is_our_module(module):
        return "a function of C's"
    return f"{module}.{caller.f_code.co_qualname}"


def _refuse_unseen_paired(frame: FrameType, method: Any) -> None:
    capture = session()
    if capture is None:
        return
    if isinstance(method.__self__, WRITTEN_IN_C):
        capture.unseen.before_lock(frame, method.__self__, method.__name__)
    elif not is_our_module(frame.f_globals.get("__name__", "")) and is_users(frame):
        capture.unseen.before_paired(method.__self__, method.__name__)


def _asking(frame: FrameType) -> FrameType:
    """The frame that calls the module of random numbers, which keeps a state that a rehearsal puts back."""
    while frame.f_code.co_filename == random.__file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame


_SPEAKING = frozenset({print, input, os.write})
UNSEEN = Calls(frozenset({*CLOCKS, *CHANCE, *_SPEAKING}), (io.IOBase, *SEEDED, *PAIRED), refuse_unseen)
"""What a capture is told of."""
