"""Functions of ``math`` that torch has not, made of those that it has."""

from __future__ import annotations

import math
from typing import Any

import torch

from stillgraph.passes.numbers.casting import Emit, Lowering, Operand, tensor_of


def _times(factor: float) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(torch.mul, tensor_of(emit, operands[0], float), factor, kind=float)

    return lower


def _folded(function: Any, of: type) -> Lowering:
    """A function of any number of numbers, made of one of two."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        if not operands:
            return None
        result = emit(torch.abs, tensor_of(emit, operands[0], of), kind=of)
        for operand in operands[1:]:
            result = emit(function, result, tensor_of(emit, operand, of), kind=of)
        return result

    return lower


def _log(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    of_each = [emit(torch.log, tensor_of(emit, operand, float), kind=float) for operand in operands]
    return of_each[0] if len(of_each) == 1 else emit(torch.div, *of_each, kind=float)


def _remainder(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """What is left of the nearest multiple, the even one of two: as Python computes it, without an error."""

    def on(function: Any, *given: Any, kind: type = float) -> Any:
        return emit(function, *given, kind=kind)

    left, right = (tensor_of(emit, operand, float) for operand in operands)
    size, by = on(torch.abs, left), on(torch.abs, right)
    rest = on(torch.fmod, size, by)
    other = on(torch.sub, by, rest)
    of_half = on(torch.fmod, on(torch.mul, on(torch.sub, size, rest), 0.5), by)
    at_half = on(torch.sub, rest, on(torch.mul, of_half, 2.0))
    above = on(torch.where, on(torch.gt, rest, other, kind=bool), on(torch.neg, other), at_half)
    found = on(torch.where, on(torch.lt, rest, other, kind=bool), rest, above)
    sign = on(torch.copysign, tensor_of(emit, (float, 1.0), float), left)
    return on(torch.where, on(torch.isinf, right, kind=bool), left, on(torch.mul, sign, found))


def _cube_root(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """The cube root: a power, one step of Newton's, and the whole number nearby if that is the root."""

    def on(function: Any, *given: Any, kind: type = float) -> Any:
        return emit(function, *given, kind=kind)

    value = tensor_of(emit, operands[0], float)
    size = on(torch.abs, value)
    root = on(torch.pow, size, 1.0 / 3.0)
    squared = on(torch.mul, root, root)
    step = on(torch.div, on(torch.sub, root, on(torch.div, size, squared)), 3.0)
    plain = on(torch.logical_and, on(torch.isfinite, step, kind=bool), on(torch.gt, size, 0.0, kind=bool), kind=bool)
    root = on(torch.where, plain, on(torch.sub, root, step), root)
    whole = on(torch.round, root)
    is_whole = on(torch.eq, on(torch.mul, on(torch.mul, whole, whole), whole), size, kind=bool)
    return on(torch.copysign, on(torch.where, is_whole, whole, root), value)


_MOST_ROOT = 3037000499  # of a whole number of 64 bits


def _whole_root(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """``math.isqrt``: a root of floats is one more, or one less, at most."""

    def on(function: Any, *given: Any, kind: type = int) -> Any:
        return emit(function, *given, kind=kind)

    value = tensor_of(emit, operands[0], int)
    root = on("to", on(torch.sqrt, on("to", value, torch.float64, kind=float), kind=float), torch.int64)
    root = on(torch.clamp, root, 0, _MOST_ROOT)
    root = on(torch.sub, root, on("to", on(torch.gt, on(torch.mul, root, root), value, kind=bool), torch.int64))
    above = on(torch.clamp, on(torch.add, root, 1), 0, _MOST_ROOT)
    fits = on(torch.le, on(torch.mul, above, above), value, kind=bool)
    return on(torch.where, fits, above, root)


def _last_place(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """``math.ulp``: how far the next float is, seen from zero; of the largest one, how far the one before."""

    def on(function: Any, *given: Any, kind: type = float) -> Any:
        return emit(function, *given, kind=kind)

    size = on(torch.abs, tensor_of(emit, operands[0], float))
    above = on(torch.sub, on(torch.nextafter, size, tensor_of(emit, (float, math.inf), float)), size)
    below = on(torch.sub, size, on(torch.nextafter, size, tensor_of(emit, (float, 0.0), float)))
    found = on(torch.where, on(torch.isinf, above, kind=bool), below, above)
    return on(torch.where, on(torch.isinf, size, kind=bool), size, found)


def _is_close(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    def on(function: Any, *given: Any, kind: type = bool) -> Any:
        return emit(function, *given, kind=kind)

    left, right = (tensor_of(emit, operand, float) for operand in operands)
    apart = on(torch.abs, on(torch.sub, right, left, kind=float), kind=float)
    sizes = (on(torch.abs, on(torch.mul, each, _CLOSE, kind=float), kind=float) for each in (right, left))
    near = on(torch.logical_or, *(on(torch.le, apart, size) for size in sizes))
    both = on(torch.logical_and, on(torch.isfinite, left), on(torch.isfinite, right))
    return on(torch.logical_or, on(torch.eq, left, right), on(torch.logical_and, near, both))


_CLOSE = 1e-09  # what `math.isclose` takes where nothing else is said

FUNCTIONS: dict[Any, Lowering] = {
    math.log: _log,
    math.degrees: _times(180.0 / math.pi),
    math.radians: _times(math.pi / 180.0),
    math.hypot: _folded(torch.hypot, float),
    math.gcd: _folded(torch.gcd, int),
    math.lcm: _folded(torch.lcm, int),
    math.remainder: _remainder,
    math.cbrt: _cube_root,
    math.isqrt: _whole_root,
    math.ulp: _last_place,
    math.isclose: _is_close,
}
"""By the function, how it is lowered."""
