"""The texts of errors that Python raises in a capture: they tell the kinds of values that eager PyTorch has."""

from __future__ import annotations

import re

import torch

from stillgraph.core.diagnostics import MisreadError, refuse
from stillgraph.program.facts.info import info
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import DATA_DEPENDENT
from stillgraph.trace.values.operands import ONE_KIND

KINDS = {
    "FakeTensor": "Tensor",
    "StagedFloat": "float",
    "StagedInt": "int",
    "StagedBool": "bool",
    "StagedText": "str",
    "StagedComplex": "complex",
}
"""By their names, classes of what stands for values in a capture, and the names of those that eager PyTorch has."""
_NAMES = re.compile(rf"\b({'|'.join(KINDS)})\b")

OF_MIXED_KINDS = ("StagedMixedInt", "StagedMixedFloat")
"""Names of those that stand for numbers of one kind on one path and of another on the other."""
_MIXED = re.compile(rf"\b({'|'.join(OF_MIXED_KINDS)})\b")

OF_SEVERAL_KINDS = (
    *("Staged", "StagedNumber", "StagedArray", "StagedList", "StagedSpread", "StagedRows", "StagedArrayRows"),
    *("StagedReversed", "StagedEntries", "Unjoined", "UnjoinedMethod", "MaybeKey", "CaughtPart", "Table"),
)
"""Names of classes of ours whose instances stand for values of kinds that these do not tell."""

_GIVEN = re.compile(r"__ returned non-\w+ \(type (FakeTensor|Staged\w+|Unjoined)\)|^__hash__ method should return")
"""What Python says of what a special method of the user's has given, where it takes nothing that stands for a value."""
_CONVERT = "Convert the object by hand: int(value) or operator.index(value) in the place of value."
_UNKNOWN = re.compile(rf"\b({'|'.join(OF_SEVERAL_KINDS)})\b")


def in_eagers_words(error: BaseException) -> None:
    """Let an exception say what it would say in eager PyTorch, if it names what stands for values in a capture.

    Raises:
        CaptureError: Python has raised it for something that stands for a value of which it does not know the kind;
            what eager PyTorch does with the value is not known.
    """
    if isinstance(error, DATA_DEPENDENT):  # outside of the functions of torch that the capture sees
        message = f"torch asks for a number that only the run knows ({str(error).strip().splitlines()[0]})"
        raise refuse("SG304", message, location=here(), kind=MisreadError) from None
    if isinstance(error, AttributeError):
        require_one_tensor(error.obj, str(error.name))
    if any(type(arg) is str and _GIVEN.search(arg) for arg in error.args):
        raise refuse_given(error.args[0]) from None
    if any(type(arg) is str and _NAMES.search(arg) for arg in error.args):
        error.args = tuple(_NAMES.sub(_kind, arg) if type(arg) is str else arg for arg in error.args)
    if any(type(arg) is str and _MIXED.search(arg) for arg in error.args):
        message = "a number that is of one kind on one path and of another on the other is given to what takes one kind"
        raise refuse("SG202", message, location=here(), hint=ONE_KIND, kind=MisreadError) from None
    if any(type(arg) is str and _UNKNOWN.search(arg) for arg in error.args):
        message = f"Python does something with a value that only the run knows, and does not take it ({error.args[0]})"
        raise refuse("SG301", message, location=here(), kind=MisreadError) from None


def refuse_given(what: str) -> BaseException:
    """The refusal of what Python's own code asks a special method of the user's for."""
    message = f"Python asks an object of the user's for what only the run knows ({what})"
    return refuse("SG301", message, location=here(), hint=_CONVERT, kind=MisreadError)


def require_one_tensor(value: object, name: str) -> None:
    """Refuse to say that a tensor has no such attribute which another one may have that it is on one path.

    Raises:
        CaptureError: only the run knows which tensor it is.
    """
    if isinstance(value, torch.Tensor) and info(value).is_joined and not hasattr(torch.Tensor, name):
        message = f"the attribute {name} is asked for of a tensor of which only the run knows which one it is"
        raise refuse("SG305", message, location=here(), hint=BESIDE_IT)


BESIDE_IT = "Keep it beside the tensor: in a tuple, a dict or an object of your own."


def _kind(found: re.Match[str]) -> str:
    return KINDS[found[1]]
