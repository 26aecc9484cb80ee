"""Branches and loops as ONNX's ``If`` and ``Loop``: what `torch.onnx` asks for the nodes of `torch.export`.

torch's own translation leaves calls of functions in the bodies, which it then fails to inline where control flow is
nested. These write the regions' nodes into the bodies at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18
from torch.onnx._internal.exporter import _core  # the tracer that records what a translation writes

op: Any = opset18  # its stubs know no values under translation
_numbers = itertools.count()


def cond(condition: Any, true: Any, false: Any, inputs: Sequence[Any] = ()) -> Sequence[Any]:
    """``torch.ops.higher_order.cond`` as ``If``."""
    given = [_value(i) for i in inputs]
    branches = [_branch(region, given) for region in (true, false)]
    return _record("If", [_value(condition)], len(true.outputs), then_branch=branches[0], else_branch=branches[1])


def _branch(region: Any, given: list[Any]) -> Any:
    nodes, results = instantiate(region, given)
    return ir.Graph((), results, nodes=nodes, name=f"{region.name}_{next(_numbers)}")


def while_loop(test: Any, body: Any, carried: Sequence[Any], operands: Sequence[Any] = ()) -> Sequence[Any]:
    """``torch.ops.higher_order.while_loop`` as ``Loop``, tested before the first iteration and after each."""
    entries, given = [_value(c) for c in carried], [_value(o) for o in operands]
    number = next(_numbers)
    before, (go,) = instantiate(test, [*entries, *given])
    _tracer().nodes.extend(before)
    inside = [
        ir.Value(name=f"carried_{number}_{i}", type=c.type, shape=_same_shape(c, left))
        for i, (c, left) in enumerate(zip(body.inputs, body.outputs))
    ]
    step, left = instantiate(body, [*inside, *given])
    after, (again,) = instantiate(test, [*left, *given])
    inputs = [
        ir.Value(name=f"iteration_{number}", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([])),
        ir.Value(name=f"go_{number}", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([])),
        *inside,
    ]
    graph = ir.Graph(inputs, [again, *left], nodes=[*step, *after], name=f"{body.name}_{number}")
    return _record("Loop", [None, go, *entries], len(entries), body=graph)


def _same_shape(before: Any, after: Any) -> Any:
    return before.shape if before.shape is not None and before.shape.is_static() else None


# ---- regions
def instantiate(region: Any, given: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The nodes of a region with values put in the place of its inputs, and its results, each made by a node."""
    values: dict[Any, Any] = dict(zip(region.inputs, given))
    nodes = [_copy(node, values, f"_{next(_numbers)}") for node in region]
    results = []
    for output in region.outputs:
        identity = ir.Node("", "Identity", [values[output]])
        result = identity.outputs[0]
        result.name, result.type, result.shape = f"result_{next(_numbers)}", output.type, output.shape
        nodes.append(identity)
        results.append(result)
    return nodes, results


def _copy(node: Any, values: dict[Any, Any], suffix: str) -> Any:
    attributes = [_copy_attribute(a, values, suffix) for a in node.attributes.values()]
    copy = ir.Node(
        node.domain,
        node.op_type,
        [values.get(i, i) if i is not None else None for i in node.inputs],
        attributes,
        overload=node.overload,
        num_outputs=len(node.outputs),
        version=node.version,
        name=f"{node.name}{suffix}",
    )
    for old, new in zip(node.outputs, copy.outputs):
        new.name, new.type, new.shape, new.const_value = f"{old.name}{suffix}", old.type, old.shape, old.const_value
        values[old] = new
    return copy


def _copy_attribute(attribute: Any, values: dict[Any, Any], suffix: str) -> Any:
    if attribute.type != ir.AttributeType.GRAPH:
        return attribute
    graph = attribute.as_graph()
    inner = dict(values)
    inputs = []
    for given in graph.inputs:
        inner[given] = ir.Value(name=f"{given.name}{suffix}", type=given.type, shape=given.shape)
        inputs.append(inner[given])
    nodes = [_copy(node, inner, suffix) for node in graph]
    copy = ir.Graph(inputs, [inner[o] for o in graph.outputs], nodes=nodes, name=f"{graph.name}{suffix}")
    return ir.Attr(attribute.name, ir.AttributeType.GRAPH, copy)


# ---- recording
def _tracer() -> Any:
    tracer = _core.current_tracer
    assert tracer is not None, "a translation runs under torch.onnx's tracer"
    return tracer


def _record(op_type: str, inputs: list[Any], outputs: int, **graphs: Any) -> Sequence[Any]:
    attributes = [ir.Attr(name, ir.AttributeType.GRAPH, graph) for name, graph in graphs.items()]
    node = ir.Node("", op_type, inputs, attributes, num_outputs=outputs, version=_tracer().opset.version)
    _tracer().nodes.append(node)
    return node.outputs


def _value(value: Any) -> Any:
    """A number among the inputs as a constant."""
    return op.Constant(value=ir.tensor(value)) if isinstance(value, (bool, int, float)) else value


def forget_sizes(x: ir.Value, dims: Any) -> Any:
    """Our own `forget_sizes`: a copy in which only shape inference sees more."""
    return op.Identity(x)


def take_sizes_of(x: ir.Value, like: ir.Value) -> Any:
    """Our own `take_sizes_of`: a copy in which only shape inference sees more."""
    return op.Identity(x)


# ---- shapes
def forget_shapes(model: ir.Model) -> None:
    """Drop what torch says of sizes that only the run knows: equal names would mean equal sizes to a runtime.

    The sizes of inputs are kept.
    """
    for graph in model.graphs():
        taken = set(graph.inputs) if graph is model.graph else set()
        for value in [*graph.inputs, *graph.outputs, *(o for node in graph for o in node.outputs)]:
            if value not in taken and value.shape is not None and not value.shape.is_static():
                value.shape = (
                    ir.Shape([d if isinstance(d, int) else None for d in value.shape])
                    if value in set(model.graph.outputs)
                    else None
                )
