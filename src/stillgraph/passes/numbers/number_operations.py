"""Python's operations on numbers, as torch's on the 0-d tensors that stand for them (bool, int64, float64)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from stillgraph.passes.regions.values import dtype_of, wider
from stillgraph.program.operations import divisor, is_integer

Emit = Callable[..., Any]  # emit(target, *args, kind=..., **kwargs) -> node
Operand = tuple[type, Any]  # the kind of a number, and its 0-d tensor or the constant itself
Lowering = Callable[[Emit, type, list[Operand]], Any]

_WHOLE = (bool, int)


def cast(emit: Emit, operand: Operand, kind: type) -> Any:
    """A number as another kind."""
    have, value = operand
    if have is kind:
        return value
    if isinstance(value, (bool, int, float)):
        return kind(value)
    if kind is bool:
        return emit(torch.ne, value, 0, kind=bool)
    return emit("to", value, dtype_of(kind), kind=kind)


def _tensor(emit: Emit, operand: Operand, kind: type) -> Any:
    value = cast(emit, operand, kind)
    return emit(torch.full, (), value, dtype=dtype_of(kind), kind=kind) if isinstance(value, kind) else value


def _arithmetic(function: Any) -> Lowering:
    """The operands are brought to one kind first, as Python does."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        common = max((wider(have, int) for have, _ in operands), key=(bool, int, float).index)
        common = wider(common, kind) if kind is not bool else common
        values = [cast(emit, operand, common) for operand in operands]
        if isinstance(values[0], (int, float)):
            values[0] = _tensor(emit, operands[0], common)
        return emit(function, *values, kind=kind)

    return lower


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
            values[0] = _tensor(emit, operands[0], common)
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
    real = _tensor(emit, (float, real), float)
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
    return emit(torch.div, *(_tensor(emit, operand, float) for operand in operands), kind=float)


def _divisor(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    value = _tensor(emit, operands[0], int)
    return emit(torch.add, value, emit("to", emit(torch.eq, value, 0, kind=bool), torch.int64, kind=int), kind=int)


def _bitwise(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(function, *(_tensor(emit, operand, kind) for operand in operands), kind=kind)

    return lower


def _extreme(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        result = _tensor(emit, operands[0], kind)
        for operand in operands[1:]:
            result = emit(function, result, _tensor(emit, operand, kind), kind=kind)
        return result

    return lower


def _unary(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(function, _tensor(emit, operands[0], kind), kind=kind)

    return lower


def _on_float(function: Any) -> Lowering:
    """A function of floats, such as those of `math`."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        result = emit(function, *(_tensor(emit, operand, float) for operand in operands), kind=float)
        return cast(emit, (float, result), kind)

    return lower


def _test_float(function: Any) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(function, _tensor(emit, operands[0], float), kind=bool)

    return lower


def _convert(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    return _tensor(emit, operands[0], kind)


def _not(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    return emit(torch.logical_not, _tensor(emit, operands[0], bool), kind=bool)


def _round(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    if operands[0][0] in _WHOLE and len(operands) == 1:
        return _tensor(emit, operands[0], int)
    value = _tensor(emit, operands[0], float)
    if len(operands) == 1:
        return cast(emit, (float, emit(torch.round, value, kind=float)), int)
    digits = operands[1][1]
    if not isinstance(digits, int):
        return None
    if kind is float and 0 < digits <= _EXACT_POWERS:
        return _round_to(emit, value, digits)
    return cast(emit, (float, emit(torch.round, value, decimals=digits, kind=float)), kind)


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
    value = _tensor(emit, operands[0], float)
    return emit(torch.eq, value, emit(torch.floor, value, kind=float), kind=bool)


# ---- functions of math that torch has not
def _times(factor: float) -> Lowering:
    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        return emit(torch.mul, _tensor(emit, operands[0], float), factor, kind=float)

    return lower


def _folded(function: Any, of: type) -> Lowering:
    """A function of any number of numbers, made of one of two."""

    def lower(emit: Emit, kind: type, operands: list[Operand]) -> Any:
        if not operands:
            return None
        result = emit(torch.abs, _tensor(emit, operands[0], of), kind=of)
        for operand in operands[1:]:
            result = emit(function, result, _tensor(emit, operand, of), kind=of)
        return result

    return lower


def _log(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    of_each = [emit(torch.log, _tensor(emit, operand, float), kind=float) for operand in operands]
    return of_each[0] if len(of_each) == 1 else emit(torch.div, *of_each, kind=float)


def _remainder(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """What is left of the nearest multiple, the even one of two: as Python computes it, without an error."""

    def on(function: Any, *given: Any, kind: type = float) -> Any:
        return emit(function, *given, kind=kind)

    left, right = (_tensor(emit, operand, float) for operand in operands)
    size, by = on(torch.abs, left), on(torch.abs, right)
    rest = on(torch.fmod, size, by)
    other = on(torch.sub, by, rest)
    of_half = on(torch.fmod, on(torch.mul, on(torch.sub, size, rest), 0.5), by)
    at_half = on(torch.sub, rest, on(torch.mul, of_half, 2.0))
    above = on(torch.where, on(torch.gt, rest, other, kind=bool), on(torch.neg, other), at_half)
    found = on(torch.where, on(torch.lt, rest, other, kind=bool), rest, above)
    sign = on(torch.copysign, _tensor(emit, (float, 1.0), float), left)
    return on(torch.where, on(torch.isinf, right, kind=bool), left, on(torch.mul, sign, found))


def _cube_root(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    """The cube root: a power, one step of Newton's, and the whole number nearby if that is the root."""

    def on(function: Any, *given: Any, kind: type = float) -> Any:
        return emit(function, *given, kind=kind)

    value = _tensor(emit, operands[0], float)
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

    value = _tensor(emit, operands[0], int)
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

    size = on(torch.abs, _tensor(emit, operands[0], float))
    above = on(torch.sub, on(torch.nextafter, size, _tensor(emit, (float, math.inf), float)), size)
    below = on(torch.sub, size, on(torch.nextafter, size, _tensor(emit, (float, 0.0), float)))
    found = on(torch.where, on(torch.isinf, above, kind=bool), below, above)
    return on(torch.where, on(torch.isinf, size, kind=bool), size, found)


def _is_close(emit: Emit, kind: type, operands: list[Operand]) -> Any:
    def on(function: Any, *given: Any, kind: type = bool) -> Any:
        return emit(function, *given, kind=kind)

    left, right = (_tensor(emit, operand, float) for operand in operands)
    apart = on(torch.abs, on(torch.sub, right, left, kind=float), kind=float)
    sizes = (on(torch.abs, on(torch.mul, each, _CLOSE, kind=float), kind=float) for each in (right, left))
    near = on(torch.logical_or, *(on(torch.le, apart, size) for size in sizes))
    both = on(torch.logical_and, on(torch.isfinite, left), on(torch.isfinite, right))
    return on(torch.logical_or, on(torch.eq, left, right), on(torch.logical_and, near, both))


_CLOSE = 1e-09  # what `math.isclose` takes where nothing else is said

LOWERINGS: dict[Any, Lowering] = {
    operator.add: _arithmetic(torch.add),
    operator.sub: _arithmetic(torch.sub),
    operator.mul: _arithmetic(torch.mul),
    operator.floordiv: _arithmetic(torch.floor_divide),
    operator.mod: _arithmetic(torch.remainder),
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
    math.floor: _on_float(torch.floor),
    math.ceil: _on_float(torch.ceil),
    max: _extreme(torch.maximum),
    min: _extreme(torch.minimum),
    round: _round,
    float.is_integer: _is_integer,
    is_integer: _is_integer,
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
