"""What stands in the place of a node of an ONNX model: how it is written, and of which dtype values are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

INT64, BOOL = ir.DataType.INT64, ir.DataType.BOOL
FLOATS = {ir.DataType.FLOAT: np.float32, ir.DataType.DOUBLE: np.float64, ir.DataType.FLOAT16: np.float16}

_SAME = {
    "Where": 1,
    **dict.fromkeys(("Unsqueeze", "Squeeze", "Reshape", "Transpose", "Expand", "Identity"), 0),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Floor", "Ceil", "Round"), 0),
}
"""Operators that give the dtype of one of their inputs: its place."""


def dtype_of(value: ir.Value | None) -> ir.DataType | None:
    """The dtype of a value, also where the model does not say it: what our own translations make has no types."""
    producer = None if value is None or value.dtype is not None else value.producer()
    if producer is not None and producer.op_type in _SAME:
        return dtype_of(producer.inputs[_SAME[producer.op_type]])
    if producer is not None and producer.op_type == "Constant" and "value" in producer.attributes:
        return producer.attributes.get_tensor("value").dtype
    if producer is not None and producer.op_type == "Cast":
        return ir.DataType(producer.attributes.get_int("to"))
    return None if value is None else value.dtype


_Test = Callable[["Writer", Sequence[ir.Value]], ir.Value]
_Body = Callable[["Writer", Sequence[ir.Value]], Sequence[ir.Value]]


@dataclass
class Writer:
    """What stands in the place of a node. The new nodes are put behind it, and it goes if they do not use it."""

    node: ir.Node
    nodes: list[ir.Node] = field(default_factory=list)
    stem: str = ""

    @property
    def dtype(self) -> ir.DataType | None:
        """Of the first input, or else of the output."""
        known = dtype_of(self.node.inputs[0])
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
        inner = Writer(self.node, [], f"{self._stem}_loop_{len(self.nodes)}")
        inside = [ir.Value(name=f"{inner.stem}_carried_{i}", type=value.type) for i, value in enumerate(carried)]
        count = ir.Value(name=f"{inner.stem}_count", type=ir.TensorType(INT64), shape=ir.Shape([]))
        before = ir.Value(name=f"{inner.stem}_before", type=ir.TensorType(BOOL), shape=ir.Shape([]))
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
