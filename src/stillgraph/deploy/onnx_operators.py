"""Operators that `torch.onnx` lacks, or translates in a way that overflows where PyTorch does not."""
from __future__ import annotations

from typing import Any

import torch
from onnxscript import FLOAT
from onnxscript import opset18 as op


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


TABLE: dict[Any, Any] = {
    torch.ops.aten.log_sigmoid.default: log_sigmoid, torch.ops.aten.median.default: median,
}
