"""Where onnxruntime computes something else than PyTorch: NaN, large integers, and means of nothing.

Seen in onnxruntime 1.31 on the CPU: reductions to the largest lose a NaN, and sort it anywhere; ``Max``, ``Min`` and
``Clip`` of int64 compare 32 bits; sums of int64 are added up in double precision; the mean of no elements is 0;
``Clip`` with one bound makes infinity a finite number.
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


@dataclass
class _Writer:
    """What stands in the place of a node. The new nodes are put behind it, and it goes if they do not use it."""

    node: ir.Node
    nodes: list[ir.Node] = field(default_factory=list)

    @property
    def dtype(self) -> ir.DataType | None:
        """Of the first input, or else of the output."""
        first = self.node.inputs[0]
        known = first.dtype if first is not None else None
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
        result.name = f"{self.node.outputs[0].name}_{op_type.lower()}_{len(self.nodes)}"
        result.type = None if dtype is None else ir.TensorType(dtype)
        return result

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
    "ReduceMean": _mean,
}
