"""What an exported program writes to: the adapter to how torch's signature names buffers and inputs for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec, TensorArgument

from stillgraph.passes.regions.values import value_of
from stillgraph.program.graphs import arguments

_MUTATIONS = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}
_COPY = torch.ops.aten.copy_.default


def name_writes(program: ExportedProgram) -> None:
    """Let the top level of a program write to no buffer and no input: it gives the new values, as its signature says.

    ::

        total.copy_(y)        →     return y, z      # y is for total
        return z
    """
    signature, graph = program.graph_signature, program.graph
    inputs = {spec.arg.name: spec for spec in signature.input_specs}
    specs: list[OutputSpec] = []
    new: list[fx.Node] = []
    places = _written(graph)
    if not places:
        return
    for place in places:
        spec = inputs[place.name]
        kind = _MUTATIONS.get(spec.kind)
        if kind is None:
            continue
        value = _last_copy(place) or _worked_on(graph, place)
        target = spec.target if kind is OutputKind.BUFFER_MUTATION else place.name
        specs.append(OutputSpec(kind, TensorArgument(value.name), target))
        new.append(value)
    output = graph.output_node()
    output.args = ((*new, *arguments(output)[0]),)
    signature.output_specs[:0] = specs
    keep_apart(program)


def _written(graph: fx.Graph) -> list[fx.Node]:
    """The placeholders that operations at the top level write to, themselves or views of them."""
    behind: dict[fx.Node, set[fx.Node]] = {}
    written: dict[fx.Node, None] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            behind[node] = {node}
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        for argument, value in _tensors(node):
            places = behind.get(value, set())
            if argument.alias_info is None:
                continue
            if argument.alias_info.is_write:
                written.update(dict.fromkeys(places))
            behind[node] = behind.get(node, set()) | places
    return list(written)


def _tensors(node: fx.Node) -> Iterator[tuple[Any, fx.Node]]:
    """The arguments of an operation's schema that are tensors, with what is given for them."""
    schema = node.target._schema  # type: ignore[union-attr]  # of an overload
    named = zip(schema.arguments, node.args)
    keywords = ((argument, node.kwargs.get(argument.name)) for argument in schema.arguments[len(node.args) :])
    for argument, given in (*named, *keywords):
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(value, fx.Node):
                yield argument, value


def _last_copy(place: fx.Node) -> fx.Node | None:
    """The new value, where the one use of a place in which it may be written is a copy behind all others."""
    copies = [user for user in place.users if user.target is _COPY and user.args[0] is place]
    if len(copies) != 1 or copies[0].users or any(user > copies[0] or _may_share(user) for user in place.users):
        return None
    value, old = copies[0].args[1], value_of(place)
    assert isinstance(value, fx.Node), "copy_ takes tensors"
    new = value_of(value)
    if new.dtype != old.dtype or new.device != old.device or list(new.shape) != list(old.shape):
        return None
    with place.graph.inserting_before(copies[0]):
        fresh = _called(place.graph, torch.ops.aten.clone.default, (value,), value)
    place.graph.erase_node(copies[0])
    return fresh


def _may_share(user: fx.Node) -> bool:
    """Whether an operation's result may be a view of what it takes. A branch or loop gives none."""
    if user.target is _COPY or not isinstance(user.target, torch._ops.OpOverload):
        return False
    return any(argument.alias_info is not None for argument in user.target._schema.arguments)


def _worked_on(graph: fx.Graph, place: fx.Node) -> fx.Node:
    """A copy of a place for the program to write to instead."""
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first):
        fresh = _called(graph, torch.ops.aten.clone.default, (place,), place)
    place.replace_all_uses_with(fresh, delete_user_cb=lambda user: user is not fresh)
    return fresh


def keep_apart(program: ExportedProgram) -> None:
    """Let no result be the very tensor that is written to a buffer: torch would hand out the buffer."""
    signature, graph = program.graph_signature, program.graph
    output = graph.output_node()
    values = list(arguments(output)[0])
    written = {value for value, spec in zip(values, signature.output_specs) if spec.kind in _MUTATIONS.values()}
    with graph.inserting_before(output):
        for index, spec in enumerate(signature.output_specs):
            if spec.kind is OutputKind.USER_OUTPUT and values[index] in written:
                fresh = _called(graph, torch.ops.aten.clone.default, (values[index],), values[index])
                _set(signature, values, index, fresh)
    output.args = (tuple(values),)
    program.graph_module.recompile()


def write_where_all_hold(program: ExportedProgram, checks: int) -> None:
    """Let a program write to buffers and inputs only where its last outputs, truth values, are all true.

    Args:
        program: names what it writes to in its signature.
        checks: how many they are.
    """
    signature, graph = program.graph_signature, program.graph
    output = graph.output_node()
    values = list(arguments(output)[0])
    written = [index for index, spec in enumerate(signature.output_specs) if spec.kind in _MUTATIONS.values()]
    if not checks or not written:
        return
    buffers = {target: name for name, target in signature.inputs_to_buffers.items()}
    places = {node.name: node for node in graph.find_nodes(op="placeholder")}
    with graph.inserting_before(output):
        fine, *others = values[-checks:]
        for flag in others:
            fine = _called(graph, torch.ops.aten.logical_and.default, (fine, flag), fine)
        for index in written:
            target = str(signature.output_specs[index].target)
            given = (fine, values[index], places[buffers.get(target, target)])
            _set(signature, values, index, _called(graph, torch.ops.aten.where.self, given, values[index]))
    output.args = (tuple(values),)
    program.graph_module.recompile()


def _set(signature: Any, values: list[Any], index: int, value: fx.Node) -> None:
    """Give a program another output."""
    values[index] = value
    signature.output_specs[index].arg = TensorArgument(value.name)


def _called(graph: fx.Graph, target: Any, args: tuple[Any, ...], like: fx.Node) -> fx.Node:
    node = graph.call_function(target, args)
    node.meta.update(like.meta)
    return node
