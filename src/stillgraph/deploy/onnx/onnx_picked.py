"""``Where`` of floats, with the signs of zeros.

onnxruntime writes zeros in the places of both operands that are not taken, and merges them: what is taken of the first
one, if that is no zero, and else what is taken of the second one. So only a -0.0 of the first one is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from stillgraph.deploy.onnx.onnx_writer import BOOL, FLOATS, Writer, dtype_of

_SCANNED = 1 << 16  # elements of a constant


def picked(write: Writer) -> Sequence[ir.Value] | None:
    """``Where``: with what has no -0.0 first, or else both operands second, beside ones, multiplied."""
    condition, first, second = write.node.inputs
    assert condition is not None and first is not None and second is not None
    dtype = dtype_of(first) or dtype_of(second) or write.node.outputs[0].dtype
    if dtype not in FLOATS or _has_no_negative_zero(first):
        return None
    # No `Not`: onnxruntime exchanges the operands in its place, and that of a condition that is a constant.
    otherwise = write.op("Xor", condition, write.constant(np.array(True)), dtype=BOOL)
    if _has_no_negative_zero(second):
        return [write.op("Where", otherwise, second, first, dtype=dtype)]
    one = write.constant(np.array(1, FLOATS[dtype]))
    firsts = write.op("Where", otherwise, one, first, dtype=dtype)
    seconds = write.op("Where", condition, one, second, dtype=dtype)
    return [write.op("Mul", firsts, seconds, dtype=dtype)]


def _has_no_negative_zero(value: ir.Value) -> bool:
    """Whether a value is known to have no element that is -0.0."""
    producer = value.producer()
    if producer is None:
        return not value.is_graph_input() and _is_free_of_it(value.const_value)
    if producer.op_type == "Constant":
        given = producer.attributes
        return _is_free_of_it(given.get_tensor("value")) if "value" in given else "value_float" not in given
    inner = producer.inputs[0] if producer.inputs else None
    if inner is not None and producer.op_type == "Cast":
        dtype = dtype_of(inner)
        return (dtype is not None and dtype not in FLOATS) or _has_no_negative_zero(inner)
    if inner is not None and producer.op_type in _SAME_ELEMENTS:
        return _has_no_negative_zero(inner)
    return producer.op_type in _NEVER


def _is_free_of_it(tensor: ir.TensorProtocol | None) -> bool:
    if tensor is None or tensor.size > _SCANNED:
        return False
    found = tensor.numpy()
    return not bool(np.any((found == 0) & np.signbit(found)))


_SAME_ELEMENTS = frozenset({"Unsqueeze", "Squeeze", "Reshape", "Transpose", "Expand", "Identity", "CastLike"})
"""Operators that only put elements elsewhere."""
_NEVER = frozenset({"Abs", "Exp", "Sigmoid", "Softmax", "Softplus"})
