"""Names in ONNX files: those of the user's arguments, results, sizes and variables, as far as the program has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch import fx

from stillgraph.deploy.description.structure import leaves_of
from stillgraph.deploy.onnx.onnx_state import Written, free_name
from stillgraph.deploy.python.variables import UserLines, result_name, stem_of
from stillgraph.passes.regions.regions import Branch, Loop, controls, is_result, outputs, placeholders, results
from stillgraph.passes.regions.values import value_of
from stillgraph.passes.state.growing import expression
from stillgraph.program.input_spec import Dim
from stillgraph.program.outputs import Constant, Container, Instance, OfKind, OneOf, OrNone, Output, Repeated, Template
from stillgraph.program.program import Program
from stillgraph.program.sources import Source

Places = tuple[tuple[int, int] | None, ...]
"""For each size of an output the axis of an input that it equals: the input's place, and the axis."""


# ---- sizes
def name_sizes(
    model: ir.Model,
    inputs: Sequence[str],
    dims: Sequence[tuple[Dim | None, ...]],
    equal: Sequence[Places],
) -> None:
    """Name the open sizes of inputs as the user does, or by argument and axis; and sizes of outputs that equal them.

    Args:
        model: as torch made it, its inputs in the order of ``inputs``.
        inputs: the names that the inputs will have.
        dims: for each input its dimensions with a name.
        equal: for outputs, in their order, which axis of which input a size of theirs equals.
    """
    known: dict[str, str] = {}
    taken = {dim.name for each in dims for dim in each if dim is not None}
    for value, ours in zip(model.graph.inputs, dims):
        for symbol, dim in zip(value.shape or (), ours):
            if dim is not None and isinstance(symbol, ir.SymbolicDim) and symbol.value is not None:
                known.setdefault(symbol.value, dim.name)
    for value, name in zip(model.graph.inputs, inputs):
        for axis, symbol in enumerate(value.shape or ()):
            if isinstance(symbol, ir.SymbolicDim) and symbol.value is not None and symbol.value not in known:
                known[symbol.value] = free_name(f"{name}_dim_{axis}", taken)
    for value in model.graph.inputs:
        if value.shape is not None:
            sizes = [size if isinstance(size, int) else known.get(size.value or "") for size in value.shape]
            value.shape = ir.Shape(sizes)
    for value, axes in zip(model.graph.outputs, equal):
        if value.shape is not None and len(value.shape) == len(axes):
            both = zip(value.shape, (_size(model.graph, place) for place in axes))
            value.shape = ir.Shape([size if isinstance(size, int) else ours for size, ours in both])


def _size(graph: ir.Graph, place: tuple[int, int] | None) -> int | str | None:
    if place is None:
        return None
    shape = graph.inputs[place[0]].shape
    size = None if shape is None else shape[place[1]]
    return size.value if isinstance(size, ir.SymbolicDim) else size


def equal_sizes(program: Program, taken: Sequence[Source]) -> list[Places]:
    """For each leaf of the result which axis of which input each of its open sizes equals, as far as it is known.

    Args:
        program: as captured.
        taken: where the inputs come from.
    """
    places: dict[Any, tuple[int, int]] = {}
    values = {given.source: given.value for given in program.inputs}
    for index, source in enumerate(taken):
        value = values.get(source)
        for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt):
                places.setdefault(expression(size), (index, axis))
    found = [value_of(value) for value in outputs(program.graph)]
    given = [found[leaf.index] if isinstance(leaf, Output) else None for leaf in leaves_of(program.result)]
    if not given:
        return [()]  # a program without results still has an output
    return [
        tuple(places.get(expression(size)) if isinstance(size, torch.SymInt) else None for size in value.shape)
        if isinstance(value, torch.Tensor)
        else ()
        for value in given
    ]


# ---- results
def result_names(program: Program) -> list[str]:
    """A name for each leaf of the result: its key or field, the variable that is returned, or its number."""
    lines = UserLines()
    hints = lines.hints(program.graph)
    values = outputs(program.graph)
    leaves = leaves_of(program.result)
    paths = dict(_paths(program.result, ()))
    names = []
    for index, leaf in enumerate(leaves):
        name = "_".join(paths.get(id(leaf), ()))
        value = values[leaf.index] if isinstance(leaf, Output) else None
        if not name and isinstance(value, fx.Node):
            name = hints.get(value, "") or (result_name(value) if is_result(value) else "")
            name = "" if name == "return_value" else name
        names.append(_plain(name) or ("output" if len(leaves) == 1 else f"output_{index}"))
    return names or ["nothing"]


def _paths(template: Template, path: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The keys and fields on the way to each leaf, by the leaf's identity; an index counts below a key alone."""
    match template:
        case Container(type=kind, context=context, children=children):
            keys = getattr(kind, "_fields", None) or (context if issubclass(kind, dict) else None)
            for index, child in enumerate(children):
                step = str(list(keys)[index]) if keys is not None else str(index) if path else ""
                yield from _paths(child, (*path, step) if step else path)
        case Instance(attributes=attributes):
            for name, child in attributes:
                yield from _paths(child, (*path, name))
        case OrNone(flag=flag, child=child):
            yield from _paths(child, path)
            yield id(flag), (*path, "is_none")
        case OfKind(value=value, kind=kind):
            yield id(value), path
            yield id(kind), (*path, "kind")
        case Repeated(columns=columns, sized=sized):
            sizes = {place + number + 1 for number, place in enumerate(sized)}  # behind each two outputs, one more
            for place, column in enumerate(columns):
                yield id(column), (*path, "sizes") if place in sizes else path
        case OneOf(index=index):
            yield id(index), path
        case Output() | Constant():
            yield id(template), path


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


# ---- values
def name_values(model: ir.Model, module: fx.GraphModule, inputs: Sequence[str], results: Sequence[str]) -> None:
    """Give every value and node of a model a short name that no other has.

    Args:
        model: as torch made it.
        module: what was exported: its branches and loops know the user's variables.
        inputs: names of the inputs.
        results: names of the outputs.
    """
    graph = model.graph
    _own_outputs(graph)
    weights = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
    wanted = dict(_variables(graph, module))
    taken = {*inputs, *(weights & set(graph.initializers))}
    fixed = dict(zip(graph.inputs, inputs))
    fixed |= {value: free_name(name, taken) for value, name in zip(graph.outputs, results)}
    fixed |= {value: name for name, value in graph.initializers.items() if name in weights}
    constants = [value for value in graph.initializers.values() if value not in fixed]
    names = {value: free_name("constant", taken) for value in constants}
    for value in _computed(graph):
        if value not in fixed:
            names[value] = free_name(wanted.get(value) or stem_of(value.name or "value"), taken)
    _rename(graph, {**names, **fixed})
    nodes: set[str] = set()
    for node in graph.all_nodes():
        node.name = free_name(f"{node.op_type}_{node.outputs[0].name}" if node.outputs else node.op_type, nodes)
    _name_bodies(graph)


def _rename(graph: ir.Graph, names: dict[ir.Value, str]) -> None:
    """Rename all at once: a name may have been another value's before."""
    initializers = list(graph.initializers.values())
    graph.initializers.clear()
    for value, name in names.items():
        value.name = name
        if value.const_value is not None:
            value.const_value.name = name
    for value in initializers:
        graph.register_initializer(value)


def _own_outputs(graph: ir.Graph) -> None:
    """Let every output be made by a node, and be no other output."""
    known = {*graph.inputs, *graph.initializers.values()}
    for index, value in enumerate(list(graph.outputs)):
        if value in known:
            identity = ir.Node("", "Identity", [value])
            graph.append(identity)
            copy = identity.outputs[0]
            copy.name, copy.type, copy.shape = value.name, value.type, value.shape
            graph.outputs[index] = copy
        known.add(value)


def _computed(graph: ir.Graph) -> Iterator[ir.Value]:
    """The results of a graph's nodes, and in their bodies what these take and compute."""
    for node in graph:
        yield from node.outputs
        for body in _bodies(node):
            yield from body.inputs
            yield from _computed(body)


def _bodies(node: ir.Node) -> list[ir.Graph]:
    return [a.as_graph() for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH]


def _name_bodies(graph: ir.Graph) -> None:
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                attribute.as_graph().name = f"{node.name}_{attribute.name}"
                _name_bodies(attribute.as_graph())


# ---- variables
def _variables(graph: ir.Graph, module: fx.GraphModule) -> Iterator[tuple[ir.Value, str]]:
    """Names for what branches and loops take and give, where the model has them as the program does."""
    yield from _of_controls([n for n in graph if n.op_type in ("If", "Loop")], list(_in_order(module)))


def _in_order(module: fx.GraphModule) -> Iterator[Branch | Loop]:
    """The branches and loops of a region as a model has them: those of a loop's test stand before the loop."""
    for control in controls(module):
        if isinstance(control, Loop):
            yield from _in_order(control.test)
        yield control


def _of_controls(nodes: list[ir.Node], ours: list[Branch | Loop]) -> Iterator[tuple[ir.Value, str]]:
    kinds = [node.op_type for node in nodes]
    if kinds != ["Loop" if isinstance(control, Loop) else "If" for control in ours]:
        return  # torch has made one fewer, or more: nobody can say which is which
    for node, control in zip(nodes, ours):
        made = {index: result_name(part) for index, part in results(control.node).items()}
        made = {index: name for index, name in made.items() if name != "getitem" and index < len(node.outputs)}
        yield from ((node.outputs[index], name) for index, name in made.items())
        if isinstance(control, Loop):
            yield from _in_loop(node, control)
            continue
        for body, arm in zip(_bodies(node), control.arms):
            yield from ((body.outputs[index], name) for index, name in made.items() if index < len(body.outputs))
            yield from _variables(body, arm)


def _in_loop(node: ir.Node, loop: Loop) -> Iterator[tuple[ir.Value, str]]:
    (body,) = _bodies(node)
    iteration, go, *carried = body.inputs
    again, *left = body.outputs
    yield from ((iteration, "iteration"), (go, "go_on"), (again, "go_on_next"))
    for taken, given, ours in zip(carried, left, placeholders(loop.body)):
        yield from ((given, f"{ours.name}_next"), (taken, ours.name))
    inside = [n for n in body if n.op_type in ("If", "Loop")]
    yield from _of_controls(inside, [*_in_order(loop.body), *_in_order(loop.test)])


# ---- state
def set_defaults(model: ir.Model, written: Sequence[Written]) -> None:
    """Put the values of the state at the time of saving into the file: an input with an initializer may be left out."""
    inputs = {value.name: value for value in model.graph.inputs}
    for each in written:
        if each.initial is not None:
            value = inputs[each.name]
            value.const_value = ir.tensor(each.initial.numpy(), name=each.name)
            model.graph.register_initializer(value)
