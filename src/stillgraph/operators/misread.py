"""Code that Python runs itself and that does not take what stands for a value of the run.

Its error names a class of ours and is none of the user's: no handler of the user's may see it.
"""

from __future__ import annotations

import re
from types import FunctionType, MethodType
from typing import Any

from stillgraph.core.diagnostics import MisreadError, refuse
from stillgraph.core.files import is_standard_library
from stillgraph.trace.frames import here
from stillgraph.trace.session import Session
from stillgraph.trace.symbolic import GuardOnDataDependentSymNode

_NUMBER = re.compile(r"\b(Staged|Sym)(Int|Float|Bool)\b")
_TEXT = re.compile(r"\bStagedText\b")
_TEXT_HINT = (
    "Such a text can only be printed, logged, written and raised: do that with it as it is, or return its value and "
    "make the text outside the static function."
)
_NUMBER_HINT = (
    "Print, log or return the number itself, and make this call outside the static function, with what that returns. "
    "not_to_static helps only where what the marked function is given is known before the run."
)


_SKIPPED_HINT = (
    "Call it outside the static function, with what that returns: what is marked not_to_static runs once, during the "
    "capture, and can only work with what is known by then."
)


def refuse_misread(capture: Session, function: Any, error: Exception) -> None:
    """To be called where a call has raised: refuse where what raised is Python's own code, given a stand-in.

    Raises:
        CaptureError: Python's code takes no stand-in; whether eager PyTorch raises as well is not known.
    """
    function = function.__func__ if isinstance(function, MethodType) else function
    told = str(error)
    if isinstance(function, FunctionType) and not is_standard_library(function.__code__.co_filename):
        if capture.skipped(function) and (_TEXT.search(told) or _NUMBER.search(told)):
            message = f"'{function.__name__}' is not rewritten, and uses what only the run knows"
            raise refuse("SG301", message, location=here(), hint=_SKIPPED_HINT, kind=MisreadError) from None
        return
    if _TEXT.search(told):
        message = f"{_called(function)} gets a text with a value in it that only the run knows"
        raise refuse("SG302", message, location=here(), hint=_TEXT_HINT, kind=MisreadError) from None
    if _NUMBER.search(told) or isinstance(error, GuardOnDataDependentSymNode):
        message = f"{_called(function)} gets a number that only the run knows"
        raise refuse("SG301", message, location=here(), hint=_NUMBER_HINT, kind=MisreadError) from None


def _called(function: Any) -> str:
    """A function as the user calls it: ``json.dumps``, ``str.join``."""
    name = getattr(function, "__qualname__", type(function).__name__)
    module = getattr(function, "__module__", None)
    return name if module in (None, "builtins") else f"{module.removeprefix('_')}.{name}"
