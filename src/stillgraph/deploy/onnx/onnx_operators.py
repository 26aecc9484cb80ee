"""Operators that `torch.onnx` lacks, or translates in a way that overflows where PyTorch does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import FLOAT, opset18

op: Any = opset18  # its stubs know no values under translation
_BOOL, _FLOAT, _DOUBLE = int(ir.DataType.BOOL), int(ir.DataType.FLOAT), int(ir.DataType.DOUBLE)
_INT32, _INT64 = int(ir.DataType.INT32), int(ir.DataType.INT64)


def log_sigmoid(x: FLOAT) -> Any:
    """``log(sigmoid(x))`` that stays finite where ``sigmoid(x)`` is 0."""
    return op.Neg(op.Softplus(op.Neg(x)))


def isinf(x: FLOAT) -> Any:
    """``torch.isinf``; torch's translation casts to single precision, where a large number of doubles is infinite."""
    if not x.dtype.is_floating_point():
        return op.Not(op.Equal(x, x))
    return op.Equal(op.Abs(x), op.CastLike(op.Constant(value_float=float("inf")), x))


def median(x: FLOAT) -> Any:
    """The lower median of all elements; NaN where there is one."""
    flat = op.Reshape(x, op.Constant(value_ints=[-1]))
    count = op.Shape(flat)
    middle = op.Div(op.Sub(count, op.Constant(value_ints=[1])), op.Constant(value_ints=[2]))
    ordered, _ = op.TopK(flat, op.Add(middle, op.Constant(value_ints=[1])), largest=0, sorted=1)
    found = op.Squeeze(op.Gather(ordered, middle))
    if not x.dtype.is_floating_point():
        return found
    missing = op.ReduceMax(op.Cast(op.IsNaN(flat), to=_INT32), keepdims=0)
    return op.Where(op.Cast(missing, to=_BOOL), op.CastLike(op.Constant(value_float=float("nan")), x), found)


def remainder(left: Any, right: Any) -> Any:
    """``torch.remainder``; torch's translation multiplies by the quotient, which may be infinite."""
    if left.dtype.is_integer():
        return op.Mod(left, right)
    rest = op.Mod(left, right, fmod=1)
    return op.Where(_is_apart(rest, right, _like(0, left)), op.Add(rest, right), rest)


def _is_apart(rest: Any, right: Any, zero: Any) -> Any:
    """Whether what is left of a division towards zero has another sign than the divisor."""
    return op.And(op.Xor(op.Less(rest, zero), op.Less(right, zero)), op.Not(op.Equal(rest, zero)))


def _floored(left: Any, right: Any, quotient: Any, zero: Any, one: Any) -> Any:
    """The largest whole number below a quotient of floats, as PyTorch and Python compute it: from what is left."""
    rest = op.Mod(left, right, fmod=1)
    whole = op.Div(op.Sub(left, rest), right)
    whole = op.Where(_is_apart(rest, right, zero), op.Sub(whole, one), whole)
    down = op.Floor(whole)
    half = op.CastLike(op.Constant(value_float=0.5), left)
    down = op.Where(op.Greater(op.Sub(whole, down), half), op.Add(down, one), down)
    signed = op.Where(op.Equal(whole, zero), op.Mul(quotient, zero), down)
    return op.Where(op.Equal(right, zero), quotient, signed)


def _like(value: int, other: Any) -> Any:
    return op.CastLike(op.Constant(value_int=value), other)


def divided(left: Any, right: Any, rounding_mode: str | None = None) -> Any:
    """``torch.div`` with a rounding mode; torch's translation divides whole numbers in single precision."""
    if rounding_mode is None and left.dtype.is_integer():
        return op.Div(op.Cast(left, to=_FLOAT), op.Cast(right, to=_FLOAT))
    quotient = op.Div(left, right)  # of whole numbers towards zero
    zero, one = _like(0, left), _like(1, left)
    if not left.dtype.is_integer():
        if rounding_mode == "trunc":
            return op.Where(op.Less(quotient, zero), op.Ceil(quotient), op.Floor(quotient))
        return quotient if rounding_mode is None else _floored(left, right, quotient, zero, one)
    if rounding_mode == "trunc" or not left.dtype.is_signed():
        return quotient
    rest = op.Sub(left, op.Mul(quotient, right))
    apart = op.Xor(op.Less(left, zero), op.Less(right, zero))
    below = op.And(apart, op.Not(op.Equal(rest, zero)))
    return op.Where(below, op.Sub(quotient, one), quotient)


def floor_divided(left: Any, right: Any) -> Any:
    """``torch.floor_divide``."""
    if isinstance(left, int):
        left = op.CastLike(op.Constant(value_int=left), right)
        left.type, left.shape = right.type, ir.Shape([])
    return divided(left, right, "floor")


def matmul(left: FLOAT, right: FLOAT) -> Any:
    """A product with a vector on the right, as one with a column.

    onnxruntime fuses a transposition into the product, and is wrong about vectors then (1.31 does).
    """
    if right.shape is None or len(right.shape) != 1:
        return op.MatMul(left, right)
    column = op.Unsqueeze(right, op.Constant(value_ints=[1]))
    return op.Squeeze(op.MatMul(left, column), op.Constant(value_ints=[-1]))


def distances(left: FLOAT, right: FLOAT, p: float = 2.0, mode: int | None = None) -> Any:
    """``torch.cdist``."""
    last = op.Constant(value_ints=[-1])
    apart = op.Sub(op.Unsqueeze(left, op.Constant(value_ints=[-2])), op.Unsqueeze(right, op.Constant(value_ints=[-3])))
    if p == 1:
        return op.ReduceL1(apart, last, keepdims=0)
    if p == 2:
        return op.ReduceL2(apart, last, keepdims=0)
    power = op.CastLike(op.Constant(value_float=p), left)
    return op.Pow(op.ReduceSum(op.Pow(op.Abs(apart), power), last, keepdims=0), op.Reciprocal(power))


def stable_sort(x: FLOAT, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
    """``torch.sort(x, stable=True)``: ``TopK`` puts the first of equal elements first, either way."""
    count = op.Gather(op.Shape(x), op.Constant(value_ints=[dim]))
    return op.TopK(x, count, axis=dim, largest=int(descending), sorted=1)


def any_of(x: Any, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Any:
    """``torch.any``: of no elements it is false, where ``ReduceMax`` is true."""
    true = op.Cast(op.Cast(x, to=_BOOL), to=_INT64)
    if len(x.shape) == 0:
        return op.Cast(x, to=_BOOL)
    found = op.ReduceSum(true, *_axes(dim), keepdims=int(keepdim))
    return op.Greater(found, op.Constant(value_int=0))


def _axes(dim: Sequence[int] | int | None) -> list[Any]:
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    return [op.Constant(value_ints=dims)] if dims else []


def _extreme(reduce: Any, choose: Any, x: Any, dim: Sequence[int] | int | None, keepdim: bool) -> Any:
    """A reduction that fails where there is nothing to reduce, as PyTorch does."""
    if len(x.shape) == 0:
        return op.Identity(x)
    made = reduce(x, *_axes(dim), keepdims=int(keepdim))
    if all(isinstance(size, int) and size > 0 for size in x.shape) or x.dtype == ir.DataType.BOOL:
        return made
    dims = [dim] if isinstance(dim, int) else list(dim or range(len(x.shape)))
    first = x
    for each in dims:
        first = op.Gather(first, op.Constant(value_ints=[0]), axis=each)
    return choose(made, first if keepdim else op.Squeeze(first, op.Constant(value_ints=dims)))


def largest(x: FLOAT, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Any:
    """``torch.amax`` and ``torch.max`` of all elements."""
    return _extreme(op.ReduceMax, op.Max, x, dim, keepdim)


def smallest(x: FLOAT, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Any:
    """``torch.amin`` and ``torch.min`` of all elements."""
    return _extreme(op.ReduceMin, op.Min, x, dim, keepdim)


def masked_select(x: Any, mask: Any) -> Any:
    """``torch.masked_select``."""
    both = [op.Expand(each, op.Shape(other)) for each, other in ((x, mask), (mask, x))]
    flat = [op.Reshape(each, op.Constant(value_ints=[-1])) for each in both]
    return op.Compress(flat[0], flat[1], axis=0)


def searchsorted(
    sequence: Any,
    values: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """``torch.searchsorted``: how many elements of each sorted row lie before each value."""
    if sorter is not None:
        raise NotImplementedError("torch.searchsorted with a sorter")
    last, before = op.Constant(value_ints=[-1]), op.Constant(value_ints=[-2])
    rows = sequence if len(sequence.shape) == 1 else op.Unsqueeze(sequence, before)
    behind = op.Greater if right or side == "right" else op.GreaterOrEqual
    is_before = op.Not(behind(rows, op.Unsqueeze(values, last)))
    return op.ReduceSum(op.Cast(is_before, to=_INT32 if out_int32 else _INT64), last, keepdims=0)


def bucketize(values: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    """``torch.bucketize``."""
    return searchsorted(boundaries, values, out_int32, right)


def cumprod(x: Any, dim: int, dtype: int | None = None) -> Any:
    """``torch.cumprod``: the product over a triangle of copies."""
    x = x if dtype in (None, -1) else op.Cast(x, to=dtype)
    if len(x.shape) == 0:
        return op.Identity(x)
    dim = dim % len(x.shape)
    last = [each for each in range(len(x.shape)) if each != dim] + [dim]
    turned = op.Transpose(x, perm=last)
    rows = op.Unsqueeze(turned, op.Constant(value_ints=[-2]))
    count = op.Gather(op.Shape(x), op.Constant(value_ints=[dim]))
    places = op.Range(op.Constant(value_int=0), op.Squeeze(count), op.Constant(value_int=1))
    passed = op.LessOrEqual(places, op.Unsqueeze(places, op.Constant(value_ints=[1])))
    one = op.CastLike(op.Constant(value_float=1.0), x)
    made = op.ReduceProd(op.Where(passed, rows, one), op.Constant(value_ints=[-1]), keepdims=0)
    made = op.Reshape(made, op.Shape(turned), allowzero=1)  # onnxruntime's product of nothing has another shape
    return op.Transpose(made, perm=[last.index(each) for each in range(len(last))])


def batch_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Any:
    """A normalisation over a batch, with the new running mean and variance; torch's translation takes the old ones."""
    axes = op.Constant(value_ints=[axis for axis in range(len(x.shape)) if axis != 1])
    if training:
        mean = op.ReduceMean(x, axes, keepdims=0)
        apart = op.Sub(x, op.Unsqueeze(mean, axes))
        variance = op.ReduceMean(op.Mul(apart, apart), axes, keepdims=0)
    else:
        mean, variance = running_mean, running_var
        apart = op.Sub(x, op.Unsqueeze(mean, axes))
    scale = op.Reciprocal(op.Sqrt(op.Add(variance, op.CastLike(op.Constant(value_float=eps), x))))
    made = op.Mul(apart, op.Unsqueeze(scale, axes))
    made = made if weight is None else op.Mul(made, op.Unsqueeze(weight, axes))
    made = made if bias is None else op.Add(made, op.Unsqueeze(bias, axes))
    if not training or running_mean is None:
        return made, mean, scale, running_mean, running_var
    count = op.Div(op.Size(x), op.Size(mean))
    one = op.Constant(value_int=1)
    spread = op.Div(op.CastLike(count, x), op.CastLike(op.Sub(count, one), x))
    new, old = (op.CastLike(op.Constant(value_float=share), x) for share in (momentum, 1 - momentum))
    means = op.Add(op.Mul(running_mean, old), op.Mul(mean, new))
    variances = op.Add(op.Mul(running_var, old), op.Mul(op.Mul(variance, spread), new))
    return made, mean, scale, means, variances


def _number(value: Any, dtype: int) -> Any:
    """A number of a dtype; torch's translation makes a float one of single precision first."""
    if isinstance(value, float) and dtype == _DOUBLE:
        return op.Constant(value=ir.tensor(np.array(value, np.float64)))
    return op.Cast(value, to=dtype)


def scalar_tensor(s: Any, dtype: int = _FLOAT, layout: str = "", device: str = "", pin_memory: bool = False) -> Any:
    """``torch.scalar_tensor``."""
    return _number(s, _FLOAT if dtype == -1 else dtype)


def full(
    size: Any, fill_value: Any, dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False
) -> Any:
    """``torch.full``."""
    value = fill_value if dtype == -1 else _number(fill_value, dtype)
    return op.Expand(value, op.Cast(size, to=_INT64))


TABLE: dict[Any, Any] = {
    torch.ops.aten.scalar_tensor.default: scalar_tensor,
    torch.ops.aten.full.default: full,
    torch.ops.aten.log_sigmoid.default: log_sigmoid,
    torch.ops.aten.isinf.default: isinf,
    torch.ops.aten.matmul.default: matmul,
    torch.ops.aten.mv.default: matmul,
    torch.ops.aten.median.default: median,
    **dict.fromkeys((torch.ops.aten.div.Tensor_mode, torch.ops.aten.div.Scalar_mode), divided),
    **dict.fromkeys((torch.ops.aten.floor_divide.default, torch.ops.aten.floor_divide.Scalar), floor_divided),
    **dict.fromkeys((torch.ops.aten.remainder.Tensor, torch.ops.aten.remainder.Scalar), remainder),
    torch.ops.aten.sort.stable: stable_sort,
    **dict.fromkeys((torch.ops.aten.any.default, torch.ops.aten.any.dim, torch.ops.aten.any.dims), any_of),
    **dict.fromkeys((torch.ops.aten.amax.default, torch.ops.aten.max.default), largest),
    **dict.fromkeys((torch.ops.aten.amin.default, torch.ops.aten.min.default), smallest),
    torch.ops.aten._native_batch_norm_legit_functional.default: batch_norm,
    torch.ops.aten.masked_select.default: masked_select,
    torch.ops.aten.searchsorted.Tensor: searchsorted,
    torch.ops.aten.bucketize.Tensor: bucketize,
    torch.ops.aten.cumprod.default: cumprod,
    torch.ops.aten._cdist_forward.default: distances,
}
