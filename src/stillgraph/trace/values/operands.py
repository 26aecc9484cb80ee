"""Operations that a stand-in has none of its own for, asked of a value of the same type, as eager PyTorch has it.

A stand-in that simply knew no such operation would let Python raise a `TypeError`, which names a class of ours, and
which a handler of the user's may take for one of eager PyTorch's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_dependency
from stillgraph.core.lookup import class_member
from stillgraph.program.facts.info import info
from stillgraph.trace.code.frames import here

SAMPLE = "stillgraph_sample"
"""The method of a stand-in that gives a value of the type for which it stands."""

ONE_KIND = "Write the number so that it has one type on both paths: 1.0 in place of 1, or int(...)."
"""What to do about a number whose kind depends on the path."""


def is_asked_itself(other: Any, method: str) -> bool:
    """Whether Python is to ask the other operand, whose ``method`` knows what stand-ins are, or is the user's."""
    if isinstance(other, torch.Tensor):
        return True
    if getattr(type(other), SAMPLE, None) is not None:
        return False
    found = class_member(type(other), method)
    if not isinstance(found, FunctionType):
        return False
    return found.__module__.startswith("stillgraph.") or not is_dependency(found.__code__.co_filename)


def unsupported(function: Callable[..., Any], *operands: Any) -> NoReturn:
    """What an operator does that no stand-in among its operands has.

    Args:
        function: of the operator.
        operands: in the order of the operator.

    Raises:
        TypeError: Python raises it for values of these types, whatever they are.
        CaptureError: Python computes something with such values.
    """
    samples = tuple(map(sample, operands))
    told: TypeError | None = None
    try:
        function(*samples)
    except TypeError as error:
        told = TypeError(*error.args)
    except Exception:  # of these samples, where eager PyTorch's values may be taken
        pass
    if told is not None:
        require_known(operands, f"is given to '{function.__name__.strip('_')}'")
        raise told
    if function is operator.mul and any(isinstance(each, (str, bytes, list, tuple)) for each in samples):
        _demand_numbers(operands)
    kinds = " and ".join(type(each).__name__ for each in samples)
    message = f"no program has '{function.__name__.strip('_')}' of {kinds}, of which only the run knows one"
    has_text = any(type(each) is str and each is not operand for each, operand in zip(samples, operands))
    raise refuse("SG302" if has_text else "SG301", message, location=here())


def require_one_kind(operands: Iterable[Any], does: str) -> None:
    """Refuse to raise for the widest kind of a number what its other kind, on another path, does not raise.

    Args:
        operands: some of which may be numbers of the run.
        does: what such a number does, as the end of a sentence.

    Raises:
        CaptureError: there is a number whose kind depends on the path.
    """
    if any(info(each).kind_varies for each in operands):
        message = f"a number that is of one kind on one path and of another on the other {does}"
        raise refuse("SG202", message, location=here(), hint=ONE_KIND)


def require_known(operands: Iterable[Any], does: str) -> None:
    """As `require_one_kind`, and of a number that may be None: that raises something else, or says so of None."""
    operands = tuple(operands)
    require_one_kind(operands, does)
    for each in operands:
        recorder = _recorder(each) if getattr(type(each), SAMPLE, None) is not None else None
        if recorder is not None and recorder.may_be_none(each):
            hint = "Ask first whether it is None: if value is not None."
            kind = "text" if isinstance(each, str) else "number"
            raise refuse("SG301", f"a {kind} that is None on one path {does}", location=here(), hint=hint)


def _recorder(stand_in: Any) -> Any:
    return getattr(stand_in, "stillgraph_recorder", None) or getattr(stand_in, "recorder", None)


def _demand_numbers(operands: Iterable[Any]) -> None:
    """Say of a sequence that is repeated that Python needs the number."""
    for each in operands:
        if getattr(type(each), SAMPLE, None) is not None and type(sample(each)) in (int, bool):
            operator.index(each)


def sample(operand: Any) -> Any:
    """A value of the type of an operand: itself, where it is no stand-in and has no methods of the user's."""
    given = getattr(type(operand), SAMPLE, None)
    if given is not None:
        return given(operand)
    if isinstance(operand, torch.Tensor):
        return type("Tensor", (), {})()
    kind = type(operand)
    plain = kind.__module__ == "builtins" or not any(
        isinstance(member, FunctionType) and not is_dependency(member.__code__.co_filename)
        for base in kind.__mro__
        for member in vars(base).values()
    )
    return operand if plain else type(kind.__name__, (), {})()
