"""Code that Python runs itself and that does not take what stands for a value of the run.

Its error names a class of ours and is none of the user's: no handler of the user's may see it.
"""

from __future__ import annotations

import collections
import itertools
import re
import statistics
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import torch

from stillgraph.core.diagnostics import MisreadError, Refusal, refusal, refuse
from stillgraph.core.faults import is_raised_by_ours, runs_users_code
from stillgraph.core.files import is_standard_library
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.maybe_number import may_be_number
from stillgraph.trace.fakes.symbolic import GuardOnDataDependentSymNode
from stillgraph.trace.torch_rules.tensor_classes import refuse_class
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.caught import Caught
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.operands import require_known
from stillgraph.trace.values.text import StagedText

_NUMBER = re.compile(r"\b(Staged|Sym)(Int|Float|Bool|Complex)\b")
_ANOTHER_CLASS = re.compile(r"^Creating a new Tensor subclass \w+ but the raw Tensor object is already associated")
"""What torch says where ``_make_subclass`` in a ``__new__`` is given what stands for a tensor."""
_TEXT = re.compile(r"\bStagedText\b")
_TEXT_HINT = (
    "Such a text can be printed, compared, carried, raised, returned and stored: do that with it as it is, or "
    "return its value and make the text outside the static function."
)
_NUMBER_HINT = (
    "Print, log or return the number itself, and make this call outside the static function, with what that returns. "
    "not_to_static helps only where what the marked function is given is known before the run."
)


_SKIPPED_HINT = (
    "Call it outside the static function, with what that returns: what is marked not_to_static runs once, during the "
    "capture, and can only work with what is known by then."
)
_BY_HAND = "Write it as a loop: for each in values: with if and break."
_STATISTICS = "Use torch on the tensor that the numbers are from: x.mean(), x.median(), x.std(), x.var()."
_OF_FUNCTIONS: dict[Callable[..., Any], str] = {
    **dict.fromkeys((min, max), "Compare the numbers alone, in a loop: if v < best: best, where = v, i."),
    **dict.fromkeys(
        (getattr(statistics, name) for name in ("mean", "fmean", "median", "stdev", "pstdev", "variance", "pvariance")),
        _STATISTICS,
    ),
    next: "Write it as a loop: found = None, then for each in values: if ...: found = each, and break.",
    itertools.islice: "Slice a tensor, x[:n], or loop over range(n).",
}
_OF_LISTS = {
    "index": "Look for it in a loop: for i, each in enumerate(values): if each == value: where = i, then break.",
    "remove": _BY_HAND,
    "count": _BY_HAND,
}


def name_demand(function: Any, refused: Refusal) -> None:
    """Let a refusal of what a function of Python's own asks for name that function, as the user calls it."""
    error = refused.error
    function = function.__func__ if isinstance(function, MethodType) else function
    is_own = not isinstance(function, FunctionType) or is_standard_library(function.__code__.co_filename)
    hint, message = error.hint, error.message
    if is_own:
        hint = _hint_of(function) or hint
        message = f"{_called(function)}, which Python runs, {message.removeprefix('Python ')}"
    refused.error = refusal(error.reason.code, message, location=error.location, hint=hint)


def _hint_of(function: Any) -> str | None:
    if isinstance(getattr(function, "__self__", None), (list, tuple, collections.deque)):
        return _OF_LISTS.get(function.__name__)
    try:
        return _OF_FUNCTIONS.get(function)
    except TypeError:  # not hashable
        return None


def refuse_misread(capture: Session, function: Any, error: Exception, is_plain: bool, given: Any) -> None:
    """To be called where a call has raised: refuse where what raised is Python's own code, given a stand-in.

    Args:
        capture: which made the call.
        function: that was called.
        error: that was raised.
        is_plain: whether Python alone has done it, rather than an operator that knows stand-ins.
        given: the arguments.

    Raises:
        CaptureError: Python's code takes no stand-in; whether eager PyTorch raises as well is not known.
    """
    function = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(error, (Caught, StopIteration)):  # what the program has caught, or a generator returns, goes on
        return
    told = _told(error)
    if isinstance(function, type) and _ANOTHER_CLASS.search(told):
        raise refuse_class(function, "is made", location=here()) from None
    if isinstance(function, FunctionType) and not is_standard_library(function.__code__.co_filename):
        if capture.conversion.skipped(function) and (_TEXT.search(told) or _NUMBER.search(told)):
            message = f"'{function.__name__}' is not rewritten, and uses what only the run knows"
            raise refuse("SG301", message, location=here(), hint=_SKIPPED_HINT, kind=MisreadError) from None
        return
    if _TEXT.search(told):
        message = f"{_called(function)} gets a text with a value in it that only the run knows"
        raise refuse("SG302", message, location=here(), hint=_TEXT_HINT, kind=MisreadError) from None
    if _NUMBER.search(told) or isinstance(error, GuardOnDataDependentSymNode) or function is itertools.islice:
        message = f"{_called(function)} gets a number that only the run knows"
        hint = _hint_of(function) or _NUMBER_HINT
        raise refuse("SG301", message, location=here(), hint=hint, kind=MisreadError) from None
    if is_plain:
        _require_told(capture, function, torch.utils._pytree.tree_leaves(given))
    if is_plain and _is_pythons(function) and _comes_of_c(error):
        receiver = getattr(function, "__self__", None)
        if any(isinstance(each, _STAND_INS) for each in (receiver, *torch.utils._pytree.tree_leaves(given))):
            message = f"{_called(function)} gets a value that only the run knows, and does not take it ({told})"
            raise refuse("SG301", message, location=here(), hint=_NUMBER_HINT, kind=MisreadError) from None


def _require_told(capture: Session, function: Any, given: list[Any]) -> None:
    """Refuse to raise where a value that was given is of another kind on another path.

    Raises:
        CaptureError: one is.
    """
    require_known(given, f"is given to {_called(function)}")
    if any(may_be_number(each) or capture.may_be_none(each) for each in given):
        message = f"{_called(function)} does not take a value that is a number or None on another path"
        hint = "Ask first which it is: if value is not None, if isinstance(value, torch.Tensor)."
        raise refuse("SG301", message, location=here(), hint=hint, kind=MisreadError) from None


_STAND_INS = (StagedText, StagedNumber, StagedArray, StagedComplex, Unjoined)


def _told(error: Exception) -> str:
    """The text of an exception, without asking what it holds for theirs."""
    return " ".join(each for each in error.args if type(each) is str)


def _is_pythons(function: Any) -> bool:
    """Whether a function is Python's, or of a package's written in C: torch's own knows stand-ins for numbers."""
    receiver = getattr(function, "__self__", None)
    return not isinstance(receiver, torch.Tensor) and not str(getattr(function, "__module__", "")).startswith("torch")


def _comes_of_c(error: Exception) -> bool:
    """Whether nothing but Python's own code has a part in an exception: no line of the user's, and no stand-in."""
    return not (runs_users_code(error) or is_raised_by_ours(error))


def _called(function: Any) -> str:
    """A function as the user calls it: ``json.dumps``, ``str.join``."""
    name = getattr(function, "__qualname__", type(function).__name__).replace("FakeTensor", "Tensor")
    module = getattr(function, "__module__", None)
    return name if module in (None, "builtins") else f"{module.removeprefix('_')}.{name}"
