"""Python's operations on numbers, as torch's on the 0-d tensors that stand for them (bool, int64, float64)."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from stillgraph.passes.numbers.casting import Emit, Lowering, Operand, cast, tensor_of
from stillgraph.passes.numbers.math_functions import FUNCTIONS
from stillgraph.passes.regions.values import wider
from stillgraph.program.operations import divisor, is_integer

_WHOLE = (bool, int)


def _arithmetic(function: Any) -> Lowering:
    """The operands are brought to one kind first, as Python does."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        common = max((wider(have, int) for have, _ in operands), key=(bool, int, float).index)
        common = wider(common, kind) if kind is not bool else common
        values = [cast(emit, operand, common) for operand in operands]
        if isinstance(values[0], (int, float)):
            values[0] = tensor_of(emit, operands[0], common)
        return emit(function, *values, kind=kind)

    return lower


def _modulo(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """``%``: of floats, Python's zero has the sign of the divisor, torch's that of the dividend."""
    found = _arithmetic(torch.remainder)(emit, kind, operands)
    if kind is not float:
        return found
    by = tensor_of(emit, operands[1], float)
    zeros = [tensor_of(emit, (float, zero), float) for zero in (-0.0, 0.0)]
    zero = emit(torch.where, emit(torch.lt, by, 0.0, kind=bool), *zeros, kind=float)  # ONNX has no `copysign`
    return emit(torch.where, emit(torch.eq, found, 0.0, kind=bool), zero, found, kind=float)


def _comparison(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        (first, left), (second, right) = operands
        if first is float and second is int and not isinstance(right, int):
            return _with_float(emit, _MIRRORED[function], right, left)
        if first is int and second is float and not isinstance(left, int):
            return _with_float(emit, function, left, right)
        common = max((wider(have, int) for have, _ in operands), key=(bool, int, float).index)
        values = [cast(emit, operand, common) for operand in operands]
        if isinstance(values[0], (int, float)):
            values[0] = tensor_of(emit, operands[0], common)
        return emit(function, *values, kind=bool)

    return lower


def _with_float(emit: Emit, function: Any, whole: Any, real: Any) -> Any:
    """A whole number compared with a float, as Python does it: by their values, of which a float may not have one."""

    def on(function: Any, *operands: Any, kind: type = bool) -> Any:
        return emit(function, *operands, kind=kind)

    if isinstance(real, float) and abs(real) < _BEYOND:
        if real.is_integer():
            return on(function, whole, int(real))
        if function in (torch.eq, torch.ne):
            return emit(torch.full, (), function is torch.ne, dtype=torch.bool, kind=bool)
        upwards = function in (torch.lt, torch.ge)
        return on(function, whole, math.ceil(real) if upwards else math.floor(real))
    real = tensor_of(emit, (float, real), float)
    is_inside = on(torch.logical_and, on(torch.ge, real, -_BEYOND), on(torch.lt, real, _BEYOND))
    below = on(torch.floor, on(torch.where, is_inside, real, 0.0, kind=float), kind=float)
    floor = on("to", below, torch.int64, kind=int)
    meets = on(torch.logical_and, is_inside, on(torch.eq, whole, floor))
    is_whole = on(torch.eq, below, real)
    if function in (torch.eq, torch.ne):
        equal = on(torch.logical_and, meets, is_whole)
        return equal if function is torch.eq else on(torch.logical_not, equal)
    strictly, beyond = (torch.lt, torch.gt) if function in (torch.lt, torch.le) else (torch.gt, torch.lt)
    within = on(torch.logical_and, is_inside, on(strictly, whole, floor))
    without = on(torch.logical_and, on(torch.logical_not, is_inside), on(beyond, real, 0.0))
    sure = on(torch.logical_or, within, without)  # onnxruntime has no `where` of truth values
    if function is torch.gt:
        return sure
    at_floor = is_whole if function is torch.ge else on(torch.logical_not, is_whole)
    return on(torch.logical_or, sure, meets if function is torch.le else on(torch.logical_and, meets, at_floor))


_BEYOND = 2.0**63  # all whole numbers of 64 bits are below, and not below its negative
_MIRRORED = {
    torch.lt: torch.gt, torch.gt: torch.lt, torch.le: torch.ge, torch.ge: torch.le,
    torch.eq: torch.eq, torch.ne: torch.ne,
}


def _divide(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    return emit(torch.div, *(tensor_of(emit, operand, float) for operand in operands), kind=float)


def _divisor(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    value = tensor_of(emit, operands[0], int)
    return emit(torch.add, value, emit("to", emit(torch.eq, value, 0, kind=bool), torch.int64, kind=int), kind=int)


def _bitwise(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(function, *(tensor_of(emit, operand, kind) for operand in operands), kind=kind)

    return lower


def _extreme(function: Any, test: Any) -> Lowering:
    """``max`` or ``min``: of floats, the first of those that no other is beyond, as NaN is of none."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        result = tensor_of(emit, operands[0], kind)
        for operand in operands[1:]:
            other = tensor_of(emit, operand, kind)
            if kind is float:
                result = emit(torch.where, emit(test, other, result, kind=bool), other, result, kind=kind)
            else:
                result = emit(function, result, other, kind=kind)
        return result

    return lower


def _unary(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(function, tensor_of(emit, operands[0], kind), kind=kind)

    return lower


def _on_float(function: Any) -> Lowering:
    """A function of floats, such as those of `math`."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        result = emit(function, *(tensor_of(emit, operand, float) for operand in operands), kind=float)
        return cast(emit, (float, result), kind)

    return lower


def _to_whole(function: Any) -> Lowering:
    """``math.floor`` or ``math.ceil``: a whole number stays what it is, and no float holds all of them."""
    of_float = _on_float(function)

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return tensor_of(emit, operands[0], int) if operands[0][0] in _WHOLE else of_float(emit, kind, operands)

    return lower


def _test_float(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(function, tensor_of(emit, operands[0], float), kind=bool)

    return lower


def _convert(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    return tensor_of(emit, operands[0], kind)


def _not(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    return emit(torch.logical_not, tensor_of(emit, operands[0], bool), kind=bool)


def _round(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    if operands[0][0] in _WHOLE and len(operands) == 1:
        return tensor_of(emit, operands[0], int)
    value = tensor_of(emit, operands[0], float)
    if len(operands) == 1:
        return cast(emit, (float, emit(torch.round, value, kind=float)), int)
    digits = operands[1][1]
    if not isinstance(digits, int):
        return None
    if operands[0][0] in _WHOLE:
        return _round_whole(emit, tensor_of(emit, operands[0], int), -digits)
    if kind is float and 0 < digits <= _EXACT_POWERS:
        return _round_to(emit, value, digits)
    return cast(emit, (float, emit(torch.round, value, decimals=digits, kind=float)), kind)


def _round_whole(emit: Emit, value: Any, zeros: int) -> Any:
    """A whole number to so many zeros at its end: halves go to the even one, and no float is on the way."""
    if zeros <= 0:
        return value
    if zeros > _MOST_ZEROS:
        return None

    def on(function: Any, *operands: Any, kind: type = int) -> Any:
        return emit(function, *operands, kind=kind)

    unit = 10**zeros
    below = on(torch.floor_divide, value, unit)
    rest = on(torch.sub, value, on(torch.mul, below, unit))
    is_odd = on(torch.ne, on(torch.remainder, below, 2), 0, kind=bool)
    is_half = on(torch.eq, rest, unit // 2, kind=bool)
    goes_up = on(torch.gt, rest, unit // 2, kind=bool)
    goes_up = on(torch.logical_or, goes_up, on(torch.logical_and, is_half, is_odd, kind=bool), kind=bool)
    return on(torch.mul, on(torch.add, below, on("to", goes_up, torch.int64)), unit)


_MOST_ZEROS = 18  # a number of 64 bits has one digit more
_EXACT_POWERS = 22  # of ten, as floats
_SPLITS = 2.0**27 + 1
_WHOLE_FLOATS = 2.0**52  # from there on, floats are whole


def _round_to(emit: Emit, value: Any, digits: int) -> Any:
    """A float to so many digits, as Python does it: the decimal nearest to what the float is, exactly.

    The product with a power of ten is rounded itself. What is lost there decides at halves: it is computed without an
    error, from products of the halves of both factors (T. J. Dekker, "A floating-point technique for extending the
    available precision", 1971).
    """

    def on(function: Any, *operands: Any, kind: type = float) -> Any:
        return emit(function, *operands, kind=kind)

    def split(factor: Any) -> tuple[Any, Any]:
        large = on(torch.mul, factor, _SPLITS)
        high = on(torch.sub, large, on(torch.sub, large, factor))
        return high, on(torch.sub, factor, high)

    power = 10.0**digits
    power_high = power * _SPLITS - (power * _SPLITS - power)
    size = on(torch.abs, value)
    product = on(torch.mul, size, power)
    high, low = split(size)
    lost = on(torch.sub, on(torch.mul, high, power_high), product)
    for half, other in ((high, power - power_high), (low, power_high), (low, power - power_high)):
        lost = on(torch.add, lost, on(torch.mul, half, other))
    below = on(torch.floor, product)
    beyond_half = on(torch.add, on(torch.sub, on(torch.sub, product, below), 0.5), lost)
    is_odd = on(torch.ne, on(torch.remainder, below, 2.0), 0.0, kind=bool)
    is_half = on(torch.eq, beyond_half, 0.0, kind=bool)
    goes_up = on(torch.gt, beyond_half, 0.0, kind=bool)
    goes_up = on(torch.logical_or, goes_up, on(torch.logical_and, is_half, is_odd, kind=bool), kind=bool)
    rounded = on(torch.div, on(torch.add, below, on("to", goes_up, torch.float64)), power)
    signed = on(torch.where, on(torch.lt, value, 0.0, kind=bool), on(torch.mul, rounded, -1.0), rounded)
    has_digits = on(torch.lt, product, _WHOLE_FLOATS, kind=bool)
    changes = on(torch.logical_and, has_digits, on(torch.gt, size, 0.0, kind=bool), kind=bool)
    return on(torch.where, changes, signed, value)


def _is_integer(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    value = tensor_of(emit, operands[0], float)
    is_whole = emit(torch.eq, value, emit(torch.floor, value, kind=float), kind=bool)
    return emit(torch.logical_and, is_whole, emit(torch.isfinite, value, kind=bool), kind=bool)


LOWERINGS: dict[Any, Lowering] = {
    operator.add: _arithmetic(torch.add),
    operator.sub: _arithmetic(torch.sub),
    operator.mul: _arithmetic(torch.mul),
    operator.floordiv: _arithmetic(torch.floor_divide),
    operator.mod: _modulo,
    operator.pow: _arithmetic(torch.pow),
    pow: _arithmetic(torch.pow),
    math.pow: _on_float(torch.pow),
    operator.truediv: _divide,
    divisor: _divisor,
    operator.lshift: _bitwise(torch.bitwise_left_shift),
    operator.rshift: _bitwise(torch.bitwise_right_shift),
    operator.and_: _bitwise(torch.bitwise_and),
    operator.or_: _bitwise(torch.bitwise_or),
    operator.xor: _bitwise(torch.bitwise_xor),
    operator.eq: _comparison(torch.eq),
    operator.ne: _comparison(torch.ne),
    operator.lt: _comparison(torch.lt),
    operator.le: _comparison(torch.le),
    operator.gt: _comparison(torch.gt),
    operator.ge: _comparison(torch.ge),
    operator.neg: _unary(torch.neg),
    operator.pos: _convert,
    operator.abs: _unary(torch.abs),
    abs: _unary(torch.abs),
    operator.invert: _unary(torch.bitwise_not),
    math.fabs: _on_float(torch.abs),
    operator.not_: _not,
    operator.truth: _convert,
    bool: _convert,
    int: _convert,
    float: _convert,
    operator.index: _convert,
    math.trunc: _convert,
    math.floor: _to_whole(torch.floor),
    math.ceil: _to_whole(torch.ceil),
    max: _extreme(torch.maximum, torch.gt),
    min: _extreme(torch.minimum, torch.lt),
    round: _round,
    float.is_integer: _is_integer,
    is_integer: _is_integer,
    **FUNCTIONS,
    math.isnan: _test_float(torch.isnan),
    math.isinf: _test_float(torch.isinf),
    math.isfinite: _test_float(torch.isfinite),
    **{
        getattr(math, name): _on_float(getattr(torch, name))
        for name in (
            "sqrt",
            "exp",
            "exp2",
            "expm1",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "erf",
            "erfc",
            "copysign",
            "fmod",
            "lgamma",
            "nextafter",
        )
        if hasattr(math, name) and hasattr(torch, name)
    },
}


def lower_number(emit: Emit, function: Any, kind: type, operands: list[Operand]) -> Any:
    """The node of ``function(*operands)``, or None where torch has nothing for it.

    Args:
        emit: makes a node.
        function: Python's.
        kind: of the result.
        operands: the arguments.
    """
    lowering = LOWERINGS.get(function)
    return None if lowering is None else lowering(emit, kind, operands)
