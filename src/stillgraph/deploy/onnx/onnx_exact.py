"""Where onnxruntime computes something else than PyTorch: NaN, large integers, and means of nothing.

Seen in onnxruntime 1.31 on the CPU: reductions to the largest lose a NaN, and sort it anywhere; ``Max``, ``Min`` and
``Clip`` of int64 compare 32 bits; sums, products and powers of int64 are in double precision; the mean of no elements
is 0; ``Clip`` with one bound makes infinity a finite number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

_INT64, _INT32, _BOOL = ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL
_FLOATS = {ir.DataType.FLOAT: np.float32, ir.DataType.DOUBLE: np.float64, ir.DataType.FLOAT16: np.float16}
_NARROW = frozenset({_BOOL, _INT32, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.UINT8})
_HALF = 1 << 32


def make_exact(model: ir.Model) -> None:
    """Write what onnxruntime computes differently in another way."""
    for graph in list(model.graphs()):
        for node in list(graph):
            form = _FORMS.get(node.op_type) if node.domain == "" else None
            if form is None:
                continue
            write = _Writer(node)
            made = form(write)
            if made is not None:
                write.replace(graph, made)


_SAME = {"Where": 1, **dict.fromkeys(("Unsqueeze", "Squeeze", "Reshape", "Transpose", "Expand", "Identity"), 0)}
"""Operators that give the dtype of one of their inputs: its place."""


def _dtype_of(value: ir.Value | None) -> ir.DataType | None:
    """The dtype of a value, also where the model does not say it: what our own translations make has no types."""
    producer = None if value is None or value.dtype is not None else value.producer()
    if producer is not None and producer.op_type in _SAME:
        return _dtype_of(producer.inputs[_SAME[producer.op_type]])
    if producer is not None and producer.op_type == "Constant" and "value" in producer.attributes:
        return producer.attributes.get_tensor("value").dtype
    if producer is not None and producer.op_type == "Cast":
        return ir.DataType(producer.attributes.get_int("to"))
    return None if value is None else value.dtype


_Test = Callable[["_Writer", Sequence[ir.Value]], ir.Value]
_Body = Callable[["_Writer", Sequence[ir.Value]], Sequence[ir.Value]]


@dataclass
class _Writer:
    """What stands in the place of a node. The new nodes are put behind it, and it goes if they do not use it."""

    node: ir.Node
    nodes: list[ir.Node] = field(default_factory=list)
    stem: str = ""

    @property
    def dtype(self) -> ir.DataType | None:
        """Of the first input, or else of the output."""
        known = _dtype_of(self.node.inputs[0])
        return known if known is not None or self.node.op_type in ("ArgMax", "ArgMin") else self.node.outputs[0].dtype

    @property
    def first(self) -> ir.Value:
        first = self.node.inputs[0]
        assert first is not None
        return first

    def op(self, op_type: str, *inputs: ir.Value | None, dtype: ir.DataType | None, **attributes: Any) -> ir.Value:
        given = [ir.convenience.convert_attribute(name, value) for name, value in attributes.items()]
        node = ir.Node("", op_type, inputs, given, version=self.node.version)
        self.nodes.append(node)
        result = node.outputs[0]
        result.name = f"{self._stem}_{op_type.lower()}_{len(self.nodes)}"
        result.type = None if dtype is None else ir.TensorType(dtype)
        return result

    @property
    def _stem(self) -> str:
        return self.stem or str(self.node.outputs[0].name)

    def loop(self, goes_on: _Test, carried: Sequence[ir.Value], body: _Body) -> Sequence[ir.Value]:
        """A loop: ``body`` makes new values of the carried ones while ``goes_on`` of them holds."""
        inner = _Writer(self.node, [], f"{self._stem}_loop_{len(self.nodes)}")
        inside = [ir.Value(name=f"{inner.stem}_carried_{i}", type=value.type) for i, value in enumerate(carried)]
        count = ir.Value(name=f"{inner.stem}_count", type=ir.TensorType(_INT64), shape=ir.Shape([]))
        before = ir.Value(name=f"{inner.stem}_before", type=ir.TensorType(_BOOL), shape=ir.Shape([]))
        left = body(inner, inside)
        outputs = [goes_on(inner, left), *left]
        graph = ir.Graph([count, before, *inside], outputs, nodes=inner.nodes, name=inner.stem)
        region = ir.Attr("body", ir.AttributeType.GRAPH, graph)
        starts = goes_on(self, carried)
        given, version = [None, starts, *carried], self.node.version
        node = ir.Node("", "Loop", given, [region], num_outputs=len(carried), version=version)
        self.nodes.append(node)
        for index, (made, value) in enumerate(zip(node.outputs, carried)):
            made.name, made.type = f"{inner.stem}_{index}", value.type
        return node.outputs

    def constant(self, value: Any) -> ir.Value:
        tensor = ir.tensor(np.asarray(value))
        return self.op("Constant", dtype=tensor.dtype, value=tensor)

    def same(self, op_type: str, *inputs: ir.Value | None, dtype: ir.DataType | None) -> ir.Value:
        """An operation with the attributes of the node."""
        result = self.op(op_type, *inputs, dtype=dtype)
        for attribute in self.node.attributes.values():
            self.nodes[-1].attributes.add(attribute)
        return result

    def replace(self, graph: Any, made: Sequence[ir.Value]) -> None:
        graph.insert_after(self.node, self.nodes)
        own = set(self.nodes)
        for old, new in zip(self.node.outputs, made):
            for user, index in tuple(old.uses()):
                if user not in own:
                    user.replace_input_with(index, new)
            graph.outputs[:] = [new if value is old else value for value in graph.outputs]
            new.type, new.shape = old.type, old.shape
        if not any(tuple(old.uses()) for old in self.node.outputs):
            graph.remove(self.node)


# ---- NaN
def _extreme(write: _Writer) -> Sequence[ir.Value] | None:
    """``ReduceMax`` and ``ReduceMin``: NaN where there is one."""
    if write.dtype not in _FLOATS:
        return None
    (found,) = write.node.outputs
    flags = write.op("Cast", write.op("IsNaN", write.first, dtype=_BOOL), dtype=_INT32, to=int(_INT32))
    some = write.same("ReduceMax", flags, *write.node.inputs[1:], dtype=_INT32)
    missing = write.constant(_FLOATS[write.dtype](np.nan))
    any_missing = write.op("Cast", some, dtype=_BOOL, to=int(_BOOL))
    return [write.op("Where", any_missing, missing, found, dtype=write.dtype)]


def _sign(write: _Writer) -> Sequence[ir.Value] | None:
    """``Sign``: 0 for NaN."""
    if write.dtype not in _FLOATS:
        return None
    missing = write.op("IsNaN", write.first, dtype=_BOOL)
    zero = write.constant(_FLOATS[write.dtype](0))
    return [write.op("Where", missing, zero, write.node.outputs[0], dtype=write.dtype)]


def _place(write: _Writer) -> Sequence[ir.Value] | None:
    """``ArgMax`` and ``ArgMin``: the place of the first NaN where there is one."""
    if write.dtype not in _FLOATS:
        return None
    (found,) = write.node.outputs
    flags = write.op("Cast", write.op("IsNaN", write.first, dtype=_BOOL), dtype=_INT32, to=int(_INT32))
    places = write.same("ArgMax", flags, dtype=_INT64)
    axis = write.node.attributes.get_int("axis", 0)
    keepdims = write.node.attributes.get_int("keepdims", 1)
    some = write.op("ReduceMax", flags, write.constant(np.array([axis])), dtype=_INT32, keepdims=keepdims)
    any_missing = write.op("Cast", some, dtype=_BOOL, to=int(_BOOL))
    return [write.op("Where", any_missing, places, found, dtype=_INT64)]


def _top(write: _Writer) -> Sequence[ir.Value] | None:
    """``TopK``: NaN counts as infinity."""
    if write.dtype not in _FLOATS:
        return None
    largest = write.constant(_FLOATS[write.dtype](np.inf))
    missing = write.op("IsNaN", write.first, dtype=_BOOL)
    keys = write.op("Where", missing, largest, write.first, dtype=write.dtype)
    attributes = list(write.node.attributes.values())
    node = ir.Node("", "TopK", [keys, write.node.inputs[1]], attributes, num_outputs=2, version=write.node.version)
    write.nodes.append(node)
    ordered, places = node.outputs
    ordered.name, places.name = f"{write.node.outputs[0].name}_keys", write.node.outputs[1].name
    ordered.type, places.type = ir.TensorType(write.dtype), ir.TensorType(_INT64)
    axis = write.node.attributes.get_int("axis", -1)
    return [write.op("GatherElements", write.first, places, dtype=write.dtype, axis=axis), places]


# ---- int64
def _chosen(write: _Writer) -> Sequence[ir.Value] | None:
    """``Max`` and ``Min`` by comparing."""
    if write.dtype != _INT64:
        return None
    return [_most(write, write.node.op_type, [value for value in write.node.inputs if value is not None])]


def _most(write: _Writer, op_type: str, values: Sequence[ir.Value]) -> ir.Value:
    result, *others = values
    for other in others:
        further = write.op("Less" if op_type == "Max" else "Greater", result, other, dtype=_BOOL)
        result = write.op("Where", further, other, result, dtype=_INT64)
    return result if others else write.op("Identity", result, dtype=_INT64)


def _clipped(write: _Writer) -> Sequence[ir.Value] | None:
    """``Clip``: of int64 by comparing; with one bound, infinity on the other side stays."""
    result, low, high = (*write.node.inputs, None, None)[:3]
    assert result is not None
    if write.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) and (low is None) != (high is None):
        op_type, bound = ("Min", high) if low is None else ("Max", low)
        return [write.op(op_type, result, bound, dtype=write.dtype)]
    if write.dtype != _INT64:
        return None
    if low is not None:
        result = _most(write, "Max", [result, low])
    return [_most(write, "Min", [result] if high is None else [result, high])]


def _sum(write: _Writer) -> Sequence[ir.Value] | None:
    """``ReduceSum`` of int64 in two halves."""
    producer = write.first.producer()
    if write.dtype != _INT64 or (producer is not None and _is_narrow(producer)):
        return None
    half = write.constant(np.array(_HALF))
    low = write.op("Mod", write.first, half, dtype=_INT64)
    high = write.op("Div", write.op("Sub", write.first, low, dtype=_INT64), half, dtype=_INT64)
    axes = write.node.inputs[1:]
    low, high = (write.same("ReduceSum", part, *axes, dtype=_INT64) for part in (low, high))
    return [write.op("Add", write.op("Mul", high, half, dtype=_INT64), low, dtype=_INT64)]


def _is_narrow(node: ir.Node) -> bool:
    """Whether a node makes int64 of what has fewer bits."""
    return node.op_type == "Cast" and node.inputs[0] is not None and node.inputs[0].dtype in _NARROW


def _product(write: _Writer) -> Sequence[ir.Value] | None:
    """``ReduceProd``: one half times the other, until one is left."""
    dtype = write.dtype
    if dtype not in (_INT64, _INT32):
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


def _product_along(write: _Writer, values: ir.Value, axis: int) -> ir.Value:
    """The product along an axis, which stays with one element."""
    dtype, places = write.dtype, write.constant(np.array([axis]))
    zero, one, two = (write.constant(np.array([number])) for number in (0, 1, 2))
    filling = write.op("Cast", write.constant(np.array(1)), dtype=dtype, to=int(dtype or _INT64))

    def longer(writer: _Writer, part: ir.Value, more: ir.Value) -> ir.Value:
        """With as many ones behind it along the axis."""
        sizes = writer.op("Concat", zero, more, dtype=_INT64, axis=0)
        return writer.op("Pad", part, sizes, filling, places, dtype=dtype)

    def length(writer: _Writer, of: ir.Value) -> ir.Value:
        return writer.op("Gather", writer.op("Shape", of, dtype=_INT64), places, dtype=_INT64)

    def goes_on(writer: _Writer, carried: Sequence[ir.Value]) -> ir.Value:
        return writer.op("Squeeze", writer.op("Greater", length(writer, carried[0]), one, dtype=_BOOL), dtype=_BOOL)

    def halved(writer: _Writer, carried: Sequence[ir.Value]) -> Sequence[ir.Value]:
        count = length(writer, carried[0])
        half = writer.op("Div", writer.op("Add", count, one, dtype=_INT64), two, dtype=_INT64)
        first = writer.op("Slice", carried[0], zero, half, places, dtype=dtype)
        second = writer.op("Slice", carried[0], half, count, places, dtype=dtype)
        missing = writer.op("Sub", writer.op("Add", half, half, dtype=_INT64), count, dtype=_INT64)
        return [writer.op("Mul", first, longer(writer, second, missing), dtype=dtype)]

    return write.loop(goes_on, [longer(write, values, one)], halved)[0]  # of nothing the product is 1


def _known(value: ir.Value) -> Any:
    """The numbers of a constant; None for any other value."""
    producer = value.producer()
    held = producer.attributes.get_tensor("value") if producer is not None and producer.op_type == "Constant" else None
    tensor = value.const_value if held is None else held
    return None if tensor is None else tensor.numpy()


def _power(write: _Writer) -> Sequence[ir.Value] | None:
    """``Pow`` of whole numbers by squaring."""
    base, exponent, dtype = write.first, write.node.inputs[1], write.dtype
    assert exponent is not None
    if dtype not in (_INT64, _INT32) or _dtype_of(exponent) not in (_INT64, _INT32):
        return None
    known = _known(exponent)
    if known is not None and known.shape == () and 0 < known.item() < 64:
        return [_power_of(write, base, int(known.item()))]
    zero, one, two = (write.constant(np.array(number, dtype.numpy())) for number in (0, 1, 2))
    exponent = write.op("Cast", exponent, dtype=dtype, to=int(dtype))
    negative = write.op("Less", exponent, zero, dtype=_BOOL)
    bases = write.op("Add", base, write.op("Mul", exponent, zero, dtype=dtype), dtype=dtype)
    size = write.op("Abs", exponent, dtype=dtype)
    steps = write.op("Add", size, write.op("Mul", base, zero, dtype=dtype), dtype=dtype)
    ones = write.op("Add", write.op("Mul", bases, zero, dtype=dtype), one, dtype=dtype)

    def goes_on(writer: _Writer, carried: Sequence[ir.Value]) -> ir.Value:
        left = writer.op("Greater", carried[2], zero, dtype=_BOOL)
        total = writer.op("ReduceSum", writer.op("Cast", left, dtype=_INT32, to=int(_INT32)), dtype=_INT32, keepdims=0)
        return writer.op("Cast", total, dtype=_BOOL, to=int(_BOOL))

    def squared(writer: _Writer, carried: Sequence[ir.Value]) -> Sequence[ir.Value]:
        result, factor, rest = carried
        odd = writer.op("Equal", writer.op("Mod", rest, two, dtype=dtype), one, dtype=_BOOL)
        more = writer.op("Where", odd, writer.op("Mul", result, factor, dtype=dtype), result, dtype=dtype)
        return [more, writer.op("Mul", factor, factor, dtype=dtype), writer.op("Div", rest, two, dtype=dtype)]

    result = write.loop(goes_on, [ones, bases, steps], squared)[0]
    alone = write.op("Equal", write.op("Abs", base, dtype=dtype), one, dtype=_BOOL)  # 1 and -1 have negative powers
    gone = write.op("And", negative, write.op("Not", alone, dtype=_BOOL), dtype=_BOOL)
    return [write.op("Where", gone, zero, result, dtype=dtype)]


def _power_of(write: _Writer, base: ir.Value, exponent: int) -> ir.Value:
    """A power by multiplications, of which onnxruntime has none where the base is one number."""
    dtype = write.dtype
    if exponent == 1:
        return write.op("Identity", base, dtype=dtype)
    half = _power_of(write, base, exponent // 2) if exponent > 3 else base
    square = write.op("Mul", half, half, dtype=dtype)
    return write.op("Mul", square, base, dtype=dtype) if exponent % 2 else square


# ---- nothing
def _mean(write: _Writer) -> Sequence[ir.Value] | None:
    """``ReduceMean`` where there may be no elements: NaN."""
    known = write.first.shape
    nonempty = known is not None and known.is_static() and 0 not in known
    if nonempty or write.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return None
    total = write.same("ReduceSum", *write.node.inputs, dtype=write.dtype)
    sizes = [write.op("Size", value, dtype=_INT64) for value in (write.first, total)]
    counts = [write.op("Cast", size, dtype=write.dtype, to=int(write.dtype)) for size in sizes]
    return [write.op("Div", total, write.op("Div", *counts, dtype=write.dtype), dtype=write.dtype)]


_FORMS: dict[str, Callable[[_Writer], Sequence[ir.Value] | None]] = {
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
}
