"""Operators that `torch.onnx` lacks, or translates in a way that overflows where PyTorch does not."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import FLOAT, opset18

op: Any = opset18  # its stubs know no values under translation


def log_sigmoid(x: FLOAT) -> Any:
    """``log(sigmoid(x))`` that stays finite where ``sigmoid(x)`` is 0."""
    return op.Neg(op.Softplus(op.Neg(x)))


def median(x: FLOAT) -> Any:
    """The lower median of all elements."""
    flat = op.Reshape(x, op.Constant(value_ints=[-1]))
    count = op.Shape(flat)
    middle = op.Div(op.Sub(count, op.Constant(value_ints=[1])), op.Constant(value_ints=[2]))
    ordered, _ = op.TopK(flat, op.Add(middle, op.Constant(value_ints=[1])), largest=0, sorted=1)
    return op.Squeeze(op.Gather(ordered, middle))


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


TABLE: dict[Any, Any] = {
    torch.ops.aten.log_sigmoid.default: log_sigmoid,
    torch.ops.aten.matmul.default: matmul,
    torch.ops.aten.mv.default: matmul,
    torch.ops.aten.median.default: median,
    torch.ops.aten.sort.stable: stable_sort,
    torch.ops.aten._cdist_forward.default: distances,
}
