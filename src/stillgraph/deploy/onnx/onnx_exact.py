"""Where onnxruntime computes something else than PyTorch: NaN, large integers, and means of nothing.

Seen in onnxruntime 1.31 on the CPU: reductions to the largest lose a NaN, and sort it anywhere; ``Max``, ``Min`` and
``Clip`` of int64 compare 32 bits; sums, products and powers of int64 are in double precision; the mean of no elements
is 0; ``Clip`` with one bound makes infinity a finite number; ``Where`` loses the sign of a zero that it takes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from stillgraph.deploy.onnx.onnx_picked import picked
from stillgraph.deploy.onnx.onnx_writer import BOOL, FLOATS, INT64, Writer, dtype_of

_INT32 = ir.DataType.INT32
_NARROW = frozenset({BOOL, _INT32, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.UINT8})
_HALF = 1 << 32


def make_exact(model: ir.Model) -> None:
    """Write what onnxruntime computes differently in another way."""
    for graph in list(model.graphs()):
        for node in list(graph):
            form = _FORMS.get(node.op_type) if node.domain == "" else None
            if form is None:
                continue
            write = Writer(node)
            made = form(write)
            if made is not None:
                write.replace(graph, made)


# ---- NaN
def _extreme(write: Writer) -> Sequence[ir.Value] | None:
    """``ReduceMax`` and ``ReduceMin``: NaN where there is one."""
    if write.dtype not in FLOATS:
        return None
    (found,) = write.node.outputs
    flags = write.op("Cast", write.op("IsNaN", write.first, dtype=BOOL), dtype=_INT32, to=int(_INT32))
    some = write.same("ReduceMax", flags, *write.node.inputs[1:], dtype=_INT32)
    missing = write.constant(FLOATS[write.dtype](np.nan))
    any_missing = write.op("Cast", some, dtype=BOOL, to=int(BOOL))
    return [write.op("Where", any_missing, missing, found, dtype=write.dtype)]


def _sign(write: Writer) -> Sequence[ir.Value] | None:
    """``Sign``: 0 for NaN."""
    if write.dtype not in FLOATS:
        return None
    missing = write.op("IsNaN", write.first, dtype=BOOL)
    zero = write.constant(FLOATS[write.dtype](0))
    return [write.op("Where", missing, zero, write.node.outputs[0], dtype=write.dtype)]


def _place(write: Writer) -> Sequence[ir.Value] | None:
    """``ArgMax`` and ``ArgMin``: the place of the first NaN where there is one."""
    if write.dtype not in FLOATS:
        return None
    (found,) = write.node.outputs
    flags = write.op("Cast", write.op("IsNaN", write.first, dtype=BOOL), dtype=_INT32, to=int(_INT32))
    places = write.same("ArgMax", flags, dtype=INT64)
    axis = write.node.attributes.get_int("axis", 0)
    keepdims = write.node.attributes.get_int("keepdims", 1)
    some = write.op("ReduceMax", flags, write.constant(np.array([axis])), dtype=_INT32, keepdims=keepdims)
    any_missing = write.op("Cast", some, dtype=BOOL, to=int(BOOL))
    return [write.op("Where", any_missing, places, found, dtype=INT64)]


def _top(write: Writer) -> Sequence[ir.Value] | None:
    """``TopK``: NaN counts as infinity."""
    if write.dtype not in FLOATS:
        return None
    largest = write.constant(FLOATS[write.dtype](np.inf))
    missing = write.op("IsNaN", write.first, dtype=BOOL)
    keys = write.op("Where", missing, largest, write.first, dtype=write.dtype)
    attributes = list(write.node.attributes.values())
    node = ir.Node("", "TopK", [keys, write.node.inputs[1]], attributes, num_outputs=2, version=write.node.version)
    write.nodes.append(node)
    ordered, places = node.outputs
    ordered.name, places.name = f"{write.node.outputs[0].name}_keys", write.node.outputs[1].name
    ordered.type, places.type = ir.TensorType(write.dtype), ir.TensorType(INT64)
    axis = write.node.attributes.get_int("axis", -1)
    return [write.op("GatherElements", write.first, places, dtype=write.dtype, axis=axis), places]


# ---- int64
def _chosen(write: Writer) -> Sequence[ir.Value] | None:
    """``Max`` and ``Min`` by comparing."""
    if write.dtype != INT64:
        return None
    return [_most(write, write.node.op_type, [value for value in write.node.inputs if value is not None])]


def _most(write: Writer, op_type: str, values: Sequence[ir.Value]) -> ir.Value:
    result, *others = values
    for other in others:
        further = write.op("Less" if op_type == "Max" else "Greater", result, other, dtype=BOOL)
        result = write.op("Where", further, other, result, dtype=INT64)
    return result if others else write.op("Identity", result, dtype=INT64)


def _clipped(write: Writer) -> Sequence[ir.Value] | None:
    """``Clip``: of int64 by comparing; with one bound, infinity on the other side stays."""
    result, low, high = (*write.node.inputs, None, None)[:3]
    assert result is not None
    if write.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) and (low is None) != (high is None):
        op_type, bound = ("Min", high) if low is None else ("Max", low)
        return [write.op(op_type, result, bound, dtype=write.dtype)]
    if write.dtype != INT64:
        return None
    if low is not None:
        result = _most(write, "Max", [result, low])
    return [_most(write, "Min", [result] if high is None else [result, high])]


def _sum(write: Writer) -> Sequence[ir.Value] | None:
    """``ReduceSum`` of int64 in two halves."""
    producer = write.first.producer()
    if write.dtype != INT64 or (producer is not None and _is_narrow(producer)):
        return None
    half = write.constant(np.array(_HALF))
    low = write.op("Mod", write.first, half, dtype=INT64)
    high = write.op("Div", write.op("Sub", write.first, low, dtype=INT64), half, dtype=INT64)
    axes = write.node.inputs[1:]
    low, high = (write.same("ReduceSum", part, *axes, dtype=INT64) for part in (low, high))
    return [write.op("Add", write.op("Mul", high, half, dtype=INT64), low, dtype=INT64)]


def _is_narrow(node: ir.Node) -> bool:
    """Whether a node makes int64 of what has fewer bits."""
    return node.op_type == "Cast" and node.inputs[0] is not None and node.inputs[0].dtype in _NARROW


def _product(write: Writer) -> Sequence[ir.Value] | None:
    """``ReduceProd``: one half times the other, until one is left."""
    dtype = write.dtype
    if dtype not in (INT64, _INT32):
        return None
    keeps = write.node.attributes.get_int("keepdims", 1)
    given = write.node.inputs[1] if len(write.node.inputs) > 1 else None
    axes = None if given is None else _known(given)
    if axes is None and (given is not None or keeps):
        return None
    whole = write.constant(np.array([-1]))
    flat = write.first if axes is not None else write.op("Reshape", write.first, whole, dtype=dtype)
    for axis in [0] if axes is None else axes.tolist():
        flat = _product_along(write, flat, axis)
    if keeps:
        return [flat]
    return [write.op("Squeeze", flat, write.constant(np.array([0]) if axes is None else axes), dtype=dtype)]


def _product_along(write: Writer, values: ir.Value, axis: int) -> ir.Value:
    """The product along an axis, which stays with one element."""
    dtype, places = write.dtype, write.constant(np.array([axis]))
    zero, one, two = (write.constant(np.array([number])) for number in (0, 1, 2))
    filling = write.op("Cast", write.constant(np.array(1)), dtype=dtype, to=int(dtype or INT64))

    def longer(writer: Writer, part: ir.Value, more: ir.Value) -> ir.Value:
        """With as many ones behind it along the axis."""
        sizes = writer.op("Concat", zero, more, dtype=INT64, axis=0)
        return writer.op("Pad", part, sizes, filling, places, dtype=dtype)

    def length(writer: Writer, of: ir.Value) -> ir.Value:
        return writer.op("Gather", writer.op("Shape", of, dtype=INT64), places, dtype=INT64)

    def goes_on(writer: Writer, carried: Sequence[ir.Value]) -> ir.Value:
        return writer.op("Squeeze", writer.op("Greater", length(writer, carried[0]), one, dtype=BOOL), dtype=BOOL)

    def halved(writer: Writer, carried: Sequence[ir.Value]) -> Sequence[ir.Value]:
        count = length(writer, carried[0])
        half = writer.op("Div", writer.op("Add", count, one, dtype=INT64), two, dtype=INT64)
        first = writer.op("Slice", carried[0], zero, half, places, dtype=dtype)
        second = writer.op("Slice", carried[0], half, count, places, dtype=dtype)
        missing = writer.op("Sub", writer.op("Add", half, half, dtype=INT64), count, dtype=INT64)
        return [writer.op("Mul", first, longer(writer, second, missing), dtype=dtype)]

    return write.loop(goes_on, [longer(write, values, one)], halved)[0]  # of nothing the product is 1


def _known(value: ir.Value) -> Any:
    """The numbers of a constant; None for any other value."""
    producer = value.producer()
    held = producer.attributes.get_tensor("value") if producer is not None and producer.op_type == "Constant" else None
    tensor = value.const_value if held is None else held
    return None if tensor is None else tensor.numpy()


def _power(write: Writer) -> Sequence[ir.Value] | None:
    """``Pow`` of whole numbers by squaring."""
    base, exponent, dtype = write.first, write.node.inputs[1], write.dtype
    assert exponent is not None
    if dtype not in (INT64, _INT32) or dtype_of(exponent) not in (INT64, _INT32):
        return None
    known = _known(exponent)
    if known is not None and known.shape == () and 0 < known.item() < 64:
        return [_power_of(write, base, int(known.item()))]
    zero, one, two = (write.constant(np.array(number, dtype.numpy())) for number in (0, 1, 2))
    exponent = write.op("Cast", exponent, dtype=dtype, to=int(dtype))
    negative = write.op("Less", exponent, zero, dtype=BOOL)
    bases = write.op("Add", base, write.op("Mul", exponent, zero, dtype=dtype), dtype=dtype)
    size = write.op("Abs", exponent, dtype=dtype)
    steps = write.op("Add", size, write.op("Mul", base, zero, dtype=dtype), dtype=dtype)
    ones = write.op("Add", write.op("Mul", bases, zero, dtype=dtype), one, dtype=dtype)

    def goes_on(writer: Writer, carried: Sequence[ir.Value]) -> ir.Value:
        left = writer.op("Greater", carried[2], zero, dtype=BOOL)
        total = writer.op("ReduceSum", writer.op("Cast", left, dtype=_INT32, to=int(_INT32)), dtype=_INT32, keepdims=0)
        return writer.op("Cast", total, dtype=BOOL, to=int(BOOL))

    def squared(writer: Writer, carried: Sequence[ir.Value]) -> Sequence[ir.Value]:
        result, factor, rest = carried
        odd = writer.op("Equal", writer.op("Mod", rest, two, dtype=dtype), one, dtype=BOOL)
        more = writer.op("Where", odd, writer.op("Mul", result, factor, dtype=dtype), result, dtype=dtype)
        return [more, writer.op("Mul", factor, factor, dtype=dtype), writer.op("Div", rest, two, dtype=dtype)]

    result = write.loop(goes_on, [ones, bases, steps], squared)[0]
    alone = write.op("Equal", write.op("Abs", base, dtype=dtype), one, dtype=BOOL)  # 1 and -1 have negative powers
    gone = write.op("And", negative, write.op("Not", alone, dtype=BOOL), dtype=BOOL)
    return [write.op("Where", gone, zero, result, dtype=dtype)]


def _power_of(write: Writer, base: ir.Value, exponent: int) -> ir.Value:
    """A power by multiplications, of which onnxruntime has none where the base is one number."""
    dtype = write.dtype
    if exponent == 1:
        return write.op("Identity", base, dtype=dtype)
    half = _power_of(write, base, exponent // 2) if exponent > 3 else base
    square = write.op("Mul", half, half, dtype=dtype)
    return write.op("Mul", square, base, dtype=dtype) if exponent % 2 else square


# ---- nothing
def _mean(write: Writer) -> Sequence[ir.Value] | None:
    """``ReduceMean`` where there may be no elements: NaN."""
    known = write.first.shape
    nonempty = known is not None and known.is_static() and 0 not in known
    if nonempty or write.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return None
    total = write.same("ReduceSum", *write.node.inputs, dtype=write.dtype)
    sizes = [write.op("Size", value, dtype=INT64) for value in (write.first, total)]
    counts = [write.op("Cast", size, dtype=write.dtype, to=int(write.dtype)) for size in sizes]
    return [write.op("Div", total, write.op("Div", *counts, dtype=write.dtype), dtype=write.dtype)]


_FORMS: dict[str, Callable[[Writer], Sequence[ir.Value] | None]] = {
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _extreme),
    **dict.fromkeys(("ArgMax", "ArgMin"), _place),
    "Sign": _sign,
    "TopK": _top,
    **dict.fromkeys(("Max", "Min"), _chosen),
    "Clip": _clipped,
    "ReduceSum": _sum,
    "ReduceProd": _product,
    "Pow": _power,
    "ReduceMean": _mean,
    "Where": picked,
}
