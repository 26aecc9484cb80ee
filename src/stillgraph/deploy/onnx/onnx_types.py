"""bfloat16 in ONNX files: onnxruntime's kernels for the CPU know it as a type of storage only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

_MOVING = frozenset({"Cast", "CastLike", "Identity", "If", "Loop", "Constant", "Reshape", "Squeeze", "Unsqueeze"})


def compute_in_float32(model: ir.Model) -> None:
    """Let operations on bfloat16 compute in float32 and round their results, as PyTorch's kernels do."""
    for graph in model.graphs():
        for node in list(graph):
            narrow = [value for value in (*node.inputs, *node.outputs) if value is not None and _is_narrow(value)]
            if narrow and node.op_type not in _MOVING:
                _widen(graph, node)


def _is_narrow(value: ir.Value) -> bool:
    return value.dtype == ir.DataType.BFLOAT16


def _widen(graph: Any, node: ir.Node) -> None:
    for index, value in enumerate(node.inputs):
        if value is not None and _is_narrow(value):
            cast = _cast(value, ir.DataType.FLOAT, f"{value.name}_{node.name}_{index}_wide")
            graph.insert_before(node, cast)
            node.replace_input_with(index, cast.outputs[0])
    for output in _narrow_outputs(node):
        cast = _cast(output, ir.DataType.BFLOAT16, f"{output.name}_narrow")
        graph.insert_after(node, cast)
        narrow = cast.outputs[0]
        for user, index in tuple(output.uses()):
            if user is not cast:
                user.replace_input_with(index, narrow)
        graph.outputs[:] = [narrow if value is output else value for value in graph.outputs]
        output.type = ir.TensorType(ir.DataType.FLOAT)


def _narrow_outputs(node: ir.Node) -> Iterator[ir.Value]:
    yield from [output for output in node.outputs if _is_narrow(output)]


def _cast(value: ir.Value, dtype: ir.DataType, name: str) -> ir.Node:
    node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))])
    node.name, result = f"node_{name}", node.outputs[0]
    result.name, result.type, result.shape = name, ir.TensorType(dtype), value.shape
    return node
