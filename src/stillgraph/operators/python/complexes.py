"""Python's complex numbers of values that only the run knows: ``complex``, and the functions of `cmath`."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import torch

from stillgraph.operators.conditions.truth import tensor_of
from stillgraph.operators.python.numbers import float_, number_of
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.torch_rules.special import HANDLERS
from stillgraph.trace.values.complexes import StagedComplex, complex_of, operation
from stillgraph.trace.values.numbers import Staged, StagedNumber
from stillgraph.trace.values.operands import unsupported

_NOT_GIVEN = object()


def complex_(real: Any = _NOT_GIVEN, imag: Any = _NOT_GIVEN) -> Any:
    """``complex``."""
    capture = capturing()
    told = (("real", real, complex), ("imag", imag, float))
    given = {name: tensor_of(number_of(value, kind)) for name, value, kind in told if value is not _NOT_GIVEN}
    if not any(isinstance(each, (Staged, torch.Tensor)) for each in given.values()):
        return complex(**given)
    given = {name: _number(capture, each, name == "real") for name, each in given.items()}
    if any(isinstance(each, StagedComplex) for each in given.values()):
        if len(given) == 1 and "real" in given:
            return given["real"]
        return operation(capture, complex, (given.get("real", 0), given["imag"]))
    if any(isinstance(each, complex) or not isinstance(each, (int, float, StagedNumber)) for each in given.values()):
        return operation(capture, complex, (given.get("real", 0), *([given["imag"]] if "imag" in given else [])))
    parts = (float_(given.get(name, 0)) for name in ("real", "imag"))
    return complex_of(*parts)


def _number(capture: Session, value: Any, is_first: bool) -> Any:
    """A tensor as the number that ``complex`` makes of it; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    is_complex = is_first and capture.to_fake(value).dtype.is_complex
    return HANDLERS[torch.Tensor.item](capture, torch.Tensor.item, (value,), {}) if is_complex else float_(value)


def _of_cmath(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `cmath` that gives a complex number, a float or a truth value."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        capture = capturing()
        given = tuple(_number(capture, tensor_of(each), True) for each in args)
        if kwargs or not any(isinstance(each, Staged) for each in given):
            return function(*given, **kwargs)
        if function is cmath.polar:
            unsupported(function, *given)
        if function in _GIVING:
            capture.before_risk()
            return capture.fresh_result(_GIVING[function], capture.emit("call_function", function, given, {}))
        return operation(capture, function, given)

    return wrapped


_GIVING: dict[Any, type] = {
    cmath.phase: float,
    **dict.fromkeys((cmath.isfinite, cmath.isinf, cmath.isnan, cmath.isclose), bool),
}


MEANINGS: dict[Any, Callable[..., Any]] = {
    complex: complex_,
    **{each: _of_cmath(each) for each in vars(cmath).values() if isinstance(each, BuiltinFunctionType)},
}
"""What a call of one of these means in a capture."""
