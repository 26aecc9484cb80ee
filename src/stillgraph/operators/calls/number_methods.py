"""The special methods of numbers as the user calls them: ``n.__add__(1.5)``, ``super().__eq__(n)``."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, MethodType, MethodWrapperType, WrapperDescriptorType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from stillgraph.operators.torch.plain_arguments import is_torch_builtin
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.number_operands import NUMBERS, base_value, takes
from stillgraph.trace.values.numbers import StagedNumber, kind_of, kinds_of
from stillgraph.trace.values.operands import require_known, sample, unsupported
from stillgraph.trace.values.operator_tables import SLOTS


def is_declined(method: MethodType, args: tuple[Any, ...]) -> bool:
    """Whether Python's own number knows nothing of such operands, and gives ``NotImplemented``.

    An operator would ask the other operand then, which the methods of what stands for a number do at once.

    Raises:
        CaptureError: of which kind a number is depends on the path.
    """
    number, name = method.__self__, method.__name__
    if not isinstance(number, StagedNumber) or not name.startswith("__"):
        return False
    return _is_declined(number, name, args)


def _is_declined(number: StagedNumber, name: str, args: tuple[Any, ...]) -> bool:
    answers = {_declines(kind(1), name, args) for kind in kinds_of(number)}
    if len(answers) > 1 or True in answers:
        require_known((number, *args), f"is asked for its {name}")
    return answers == {True}


def _declines(number: Any, name: str, args: tuple[Any, ...]) -> bool:
    try:
        return getattr(number, name)(*map(sample, args)) is NotImplemented
    except Exception:  # of any kind: the method itself is asked
        return False


def on_staged(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """What a callable written in C does with numbers of the run that it takes for something else; None for others."""
    return _of_complex(function, args, kwargs) or _slot(function, args)


def _of_complex(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """What an operation of torch's does that is given a complex number of the run, where it wants one of Python's."""
    if not isinstance(function, BuiltinFunctionType) or not is_torch_builtin(function):
        return None
    if not any(isinstance(each, StagedComplex) for each in tree_leaves((args, kwargs))):
        return None
    current = capturing()
    if isinstance(function.__self__, torch.Tensor):
        function, args = getattr(torch.Tensor, function.__name__), (function.__self__, *args)
    return lambda: current.__torch_function__(function, (), args, kwargs)


def _slot(function: Any, args: tuple[Any, ...]) -> Callable[[], Any] | None:
    """What a method of Python's number types does that is given a number of the run, of which its C code knows nothing.

    Args:
        function: what is called: ``(5).__add__``, ``super().__eq__`` or ``int.__mul__``.
        args: of the call.
    """
    if isinstance(function, MethodWrapperType):
        owner, operands = type(function.__self__), (function.__self__, *args)
        if base_value(function.__self__) is None:
            return None
    elif isinstance(function, WrapperDescriptorType):
        owner, operands = function.__objclass__, args
    else:
        return None
    if not issubclass(owner, NUMBERS) or not any(isinstance(each, StagedNumber) for each in operands):
        return None
    return lambda: _called(function, operands)


def _called(function: Any, operands: tuple[Any, ...]) -> Any:
    name = function.__name__
    computes, reflected = SLOTS.get(name, (None, False))
    if computes is None or len(operands) != 2:
        return unsupported(function, *operands)
    left, right = (operand if isinstance(operand, StagedNumber) else base_value(operand) for operand in operands)
    if left is None or not issubclass(kind_of(left), getattr(function, "__objclass__", object)):
        return unsupported(function, *operands)
    if right is None or not takes(kind_of(left), kind_of(right)(1)):
        return NotImplemented
    current = capturing()
    return current.number_operation(computes, (right, left) if reflected else (left, right))
