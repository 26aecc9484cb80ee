"""`breakpoint()` and `pdb.set_trace()` in a function that is captured: they stop in it, and show what it computes with.

A function stops while it is captured. Where Python would start its own debugger, one starts that passes over the frames
of this package and of torch, takes the blocks of a rewritten function for parts of it, and tells of a value that only
the run knows what it is. Any other debugger is called from the user's frame, as it is.
"""

from __future__ import annotations

import bdb
import os
import pdb
import pprint
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch

from stillgraph.core.files import is_ours, is_torch
from stillgraph.program.types import show_shape
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import function_frame
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.current import can_step_out, stepping_out
from stillgraph.trace.values.numbers import StagedNumber, kind_of

_IN_THE_RUN = "which the run computes"


def stopping(function: Any) -> Any:
    """What to call in the place of a function that starts a debugger in the frame that calls it."""
    if session() is None:
        return function
    starts_pdb = function is breakpoint and sys.breakpointhook is sys.__breakpointhook__ and _wants_pdb()
    return _set_trace if starts_pdb or _is_pdbs(function) else function


def _is_pdbs(function: Any) -> bool:
    """Whether a function is ``pdb.set_trace``, and not what a test runner has put in its place."""
    return isinstance(function, FunctionType) and (function.__module__, function.__name__) == ("pdb", "set_trace")


def _wants_pdb() -> bool:
    return os.environ.get("PYTHONBREAKPOINT", "") in ("", "pdb.set_trace")


def _set_trace(*, header: str | None = None) -> None:
    """``pdb.set_trace``, in a capture."""
    capture = session()
    assert capture is not None, "it is called at once"
    _start(capture, sys._getframe(1), header)


def stop_for(capture: Session, function: Any, frame: FrameType) -> Callable[..., Any] | None:
    """What does, for a frame, what a function does that starts a debugger in the frame that calls it.

    Args:
        capture: the one going on.
        function: what the user calls, by a name that was not known when the function was rewritten.
        frame: the user's.

    Returns:
        A function of the same arguments; None where ``function`` starts no debugger.
    """
    if _is_pdbs(function):
        return lambda *, header=None: _start(capture, frame, header)
    if isinstance(function, MethodType) and function.__func__ is bdb.Bdb.set_trace:
        return lambda: _continue_in(function.__self__, frame)
    return None


def _start(capture: Session, frame: FrameType, header: str | None) -> None:
    with capture.executed.paused():
        debugger = _Debugger(capture)
        if header is not None:
            debugger.message(header)
        debugger.set_trace(frame)


def _continue_in(debugger: Any, frame: FrameType) -> None:
    """Let a debugger of the user's stop at the next line of a frame, and not on the way back to it."""
    debugger.set_trace(frame)
    sys.settrace(None)  # so that it does not stop in what follows
    debugger.set_next(frame)
    sys.settrace(debugger.trace_dispatch)


class _Debugger(pdb.Pdb):
    """Python's debugger, for a function that is being captured."""

    def __init__(self, capture: Session) -> None:
        super().__init__()
        self._capture = capture

    # ---- where to stop
    def stop_here(self, frame: FrameType) -> bool:
        """As ever; and in the blocks of the function that the user goes through line by line."""
        if self._is_at_service(frame):
            return False
        if super().stop_here(frame):
            return True
        wanted = self.stopframe
        if wanted is None or self.stoplineno == -1 or frame.f_code.co_name == "<lambda>":
            return False
        own = self._function_frame(frame)
        return own is not frame and own is self._function_frame(wanted) and frame.f_lineno >= self.stoplineno

    def _is_at_service(self, frame: FrameType | None) -> bool:
        """Whether a frame is of code that operators or torch run, which are not gone through."""
        while frame is not None and not self._capture.is_rewritten(frame.f_code):
            if _is_passed_over(frame):
                return True
            frame = frame.f_back
        return False

    def _function_frame(self, frame: FrameType) -> FrameType:
        return function_frame(frame) if self._capture.is_rewritten(frame.f_code) else frame

    def user_call(self, frame: FrameType, argument_list: Any) -> None:
        if self._function_frame(frame) is frame:
            super().user_call(frame, argument_list)

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        own = self._function_frame(frame)
        if own is frame:
            super().user_return(frame, return_value)
        else:
            self.set_next(own)

    # ---- what to show
    def get_stack(self, f: FrameType | None, t: Any) -> tuple[list[tuple[FrameType, int]], int]:
        stack, index = super().get_stack(f, t)
        current = stack[index] if stack else None
        shown = [each for each in stack if each is current or not _is_passed_over(each[0])]
        return shown, next((i for i, each in enumerate(shown) if each is current), 0)

    def interaction(self, frame: Any, traceback: Any) -> None:
        """Nothing that is typed becomes part of the program."""
        capture = self._capture
        if session() is not capture or not can_step_out(capture):
            super().interaction(frame, traceback)
            return
        with stepping_out(capture):
            super().interaction(frame, traceback)

    def setup(self, f: Any, tb: Any) -> None:
        super().setup(f, tb)
        self._see_function()

    def _select_frame(self, number: int) -> None:
        super()._select_frame(number)
        self._see_function()

    def _see_function(self) -> None:
        """In a block, the variables of its function are seen, too."""
        frame = self.curframe
        own = None if frame is None else self._function_frame(frame)
        if own is not None and own is not frame:
            self.curframe_locals = {**own.f_locals, **self.curframe_locals}

    def displayhook(self, obj: Any) -> None:
        if obj is not None:
            self.message(_text(obj, repr))

    def do_p(self, arg: str) -> None:
        self._print(arg, repr)

    def do_pp(self, arg: str) -> None:
        self._print(arg, pprint.pformat)

    def _print(self, arg: str, text: Callable[[Any], str]) -> None:
        try:
            value = self._getval(arg)
        except BaseException:
            return  # it has told of the error
        self.message(_text(value, text))

    complete_p = pdb.Pdb._complete_expression
    complete_pp = complete_p


def _is_passed_over(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return is_ours(file) or is_torch(file) or frame.f_globals.get("__name__") == "contextlib"


def _text(value: Any, text: Callable[[Any], str]) -> str:
    if isinstance(value, StagedNumber):
        return f"<{kind_of(value).__name__}, {_IN_THE_RUN}>"
    if isinstance(value, torch.Tensor) and is_fake(value):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"<{dtype} tensor of shape {show_shape(tuple(value.shape))} on {value.device}, {_IN_THE_RUN}>"
    try:
        return text(value)
    except BaseException as error:  # what stands for a value of the run refuses to be text
        return f"<{type(value).__name__}: {str(error).splitlines()[0]}>"
