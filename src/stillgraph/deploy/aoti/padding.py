"""State of one element in an AOTInductor package, which torch 2.13 takes for a constant: it is kept several times."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram

from stillgraph.passes.regions.values import value_of

_TIMES = 16  # of up to 8 elements the compiler makes constants


def pad_written(program: ExportedProgram) -> None:
    """Let each buffer of one element that a program writes have several, all of the same value.

    Args:
        program: says in its signature what it writes, and is changed in place.
    """
    signature = program.graph_signature
    given = {fqn: name for name, fqn in signature.inputs_to_buffers.items()}
    nodes = {node.name: node for node in program.graph.nodes}
    for index, spec in enumerate(signature.output_specs):
        fqn = None if spec.target is None else signature.buffers_to_mutate.get(getattr(spec.arg, "name", ""))
        if fqn is None or fqn != spec.target:
            continue
        held: dict[str, Any] = program.state_dict if fqn in program.state_dict else program.constants
        if held[fqn].numel() != 1:
            continue
        held[fqn] = held[fqn].detach().reshape(1).repeat(_TIMES)
        _read_one(program.graph, nodes[given[fqn]])
        spec.arg.name = _write_all(program.graph, index)
    program.graph_module.recompile()


def _read_one(graph: fx.Graph, node: fx.Node) -> None:
    """Let what a placeholder stands for have several elements, of which the first one is read."""
    value: Tensor = value_of(node)
    last = [each for each in graph.nodes if each.op == "placeholder"][-1]
    with graph.inserting_after(last):
        first = graph.call_function(torch.ops.aten.slice.Tensor, (node, 0, 0, 1))
    with graph.inserting_after(first):
        shaped = graph.call_function(torch.ops.aten.view.default, (first, list(value.shape)))
    node.replace_all_uses_with(shaped, delete_user_cb=lambda user: user is not first)
    node.meta["val"] = value.new_empty([_TIMES])
    first.meta["val"], shaped.meta["val"] = value.new_empty([1]), value


def _write_all(graph: fx.Graph, index: int) -> str:
    """Let an output be written to all elements; the name that it has now."""
    output = graph.output_node()
    values: list[Any] = list(output.args[0])  # type: ignore[arg-type]  # a tuple of nodes
    value: Tensor = value_of(values[index])
    with graph.inserting_before(output):
        flat = graph.call_function(torch.ops.aten.reshape.default, (values[index], [1]))
        made = graph.call_function(torch.ops.aten.repeat.default, (flat, [_TIMES]))
    flat.meta["val"], made.meta["val"] = value.new_empty([1]), value.new_empty([_TIMES])
    values[index] = made
    output.args = (tuple(values),)
    return made.name
