"""State in ONNX files: what a call writes becomes an input of the graph and an output with the new value.

An ONNX file cannot keep anything from one run to the next. A buffer, or a number of an object, that a call writes is an
input whose default is the value at the time of saving; who runs the file hands the output in again. A tensor of the
call that is written in place has an output as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.exporting.packing import Packed
from stillgraph.passes.regions.regions import outputs, placeholders, set_outputs
from stillgraph.passes.regions.values import storage_of
from stillgraph.program.facts.writes import written_arguments


@dataclass(frozen=True)
class Written:
    """A tensor that a call writes.

    Attributes:
        name: of the input.
        output: the name of the output with the new value.
        place: what it is in the user's objects (`signature.place_key`).
        initial: of state its value at the time of saving; None of a tensor of the call.
    """

    name: str
    output: str
    place: Any
    initial: torch.Tensor | None


def state_as_arguments(packed: Packed) -> tuple[Packed, tuple[Written, ...]]:
    """Let a module take what it writes, and give the new values behind its results, in the order of what is returned.

    ::

        self.seen.add_(x)     →     def forward(x, seen):
        return y                        now = seen.clone(); now.add_(x)
                                        return y, now

    Args:
        packed: its module is changed in place.

    Raises:
        ExportError: two of the user's tensors share memory that the call writes.
    """
    module = packed.module
    found = list(_written_nodes(module))
    if not found:
        return packed, ()
    taken = {str(node.target) for node in placeholders(module)}
    state, given, values = [], [], outputs(module)
    before: list[fx.Node] = []  # of each part of the state its input
    for node in found:
        if node.op == "get_attr":
            name = free_name(str(node.target), taken)
            initial = _tensor(module, str(node.target))
            place = packed.places[str(node.target)]
            attribute, node = node, _as_placeholder(module, node)
            values = [node if value is attribute else value for value in values]
            state.append(Written(name, f"{name}_out", place, initial.detach().clone()))
            before.append(node)
            values.append(_on_copy(node, values))
        else:
            given.append((node, packed.places[str(node.target)], _on_copy(node, values)))
    written = [*state, *(Written(str(node.target), f"{node.target}_out", place, None) for node, place, _ in given)]
    values += [new for *_, new in given]
    if packed.checks:
        _keep_unless_all_hold(module, values, [*before, *(node for node, *_ in given)])
    set_outputs(module, values)
    module.graph.lint()
    module.recompile()
    initial_values = [each.initial for each in written if each.initial is not None]
    examples = (*packed.examples, *(each.clone() for each in initial_values))
    dynamic = [*packed.dynamic, *(set[int]() for _ in initial_values)]
    return replace(packed, examples=examples, dynamic=dynamic), tuple(written)


def _tensor(module: fx.GraphModule, path: str) -> torch.Tensor:
    """The tensor that a module has under a path: ``"layer.seen"``."""
    owner, _, name = path.rpartition(".")
    value = getattr(module.get_submodule(owner), name)
    assert isinstance(value, torch.Tensor), "only nodes of tensors are written to"
    return value


def _keep_unless_all_hold(module: fx.GraphModule, values: list[Any], before: list[fx.Node]) -> None:
    """Let new values be the old ones where a check fails.

    Args:
        module: changed in place.
        values: what it gives, a dict of its checks before the new values; these are exchanged.
        before: the inputs with the old values.
    """
    graph = module.graph
    first = len(values) - len(before)
    flags = [*values[first - 1].values()]
    with graph.inserting_before(graph.output_node()):
        fine = flags[0]
        for flag in flags[1:]:
            fine = _made(graph, torch.logical_and, (fine, flag), fine.meta["val"])
        for place, old in enumerate(before, first):
            new = values[place]
            values[place] = _made(graph, torch.where, (fine, new, old), new.meta["val"])


def _made(graph: fx.Graph, target: Any, args: tuple[Any, ...], value: Any) -> fx.Node:
    node = graph.call_function(target, args)
    node.meta["val"] = value
    return node


def free_name(name: str, taken: set[str]) -> str:
    """A name that is not taken; it is from now on."""
    stem, number = name, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    return name


def _written_nodes(module: fx.GraphModule) -> Iterable[fx.Node]:
    """The inputs and attributes whose memory the module writes."""
    homes: dict[int | None, list[fx.Node]] = {}
    for node in module.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and isinstance(node.meta.get("val"), torch.Tensor)):
            homes.setdefault(storage_of(node.meta.get("val")), []).append(node)
    memory: dict[int | None, fx.Node] = {}
    for node in module.graph.nodes:
        for written in written_arguments(node):
            memory.setdefault(storage_of(written.meta["val"]), node)
    for storage, nodes in homes.items():
        if storage is None or storage not in memory:
            continue
        if len(nodes) > 1:
            names = " and ".join(str(node.target) for node in nodes)
            message = f"{names} share memory that the program writes to, and ONNX has no shared memory"
            raise refuse("SG402", message, location=memory[storage].meta.get("location"))
        yield nodes[0]


def _as_placeholder(module: fx.GraphModule, node: fx.Node) -> fx.Node:
    """A further parameter in the place of an attribute, which goes."""
    graph = module.graph
    anchor = next(each for each in graph.nodes if each.op != "placeholder")
    with graph.inserting_before(anchor):
        fresh = graph.placeholder(str(node.target).replace(".", "_"))
    fresh.meta.update(node.meta)
    node.replace_all_uses_with(fresh)
    path = str(node.target)
    graph.erase_node(node)
    owner, _, name = path.rpartition(".")
    delattr(module.get_submodule(owner), name)
    return fresh


def _on_copy(node: fx.Node, values: list[Any]) -> fx.Node:
    """Let the module work on a copy of one of its inputs."""
    graph = node.graph
    anchor = next(each for each in graph.nodes if each.op != "placeholder")
    with graph.inserting_before(anchor):
        copy = graph.call_method("clone", (node,))
    copy.meta.update(node.meta)
    for user in list(node.users):
        if user is not copy and user.op != "output":
            user.replace_input_with(node, copy)
    values[:] = [copy if value is node else value for value in values]
    return copy
