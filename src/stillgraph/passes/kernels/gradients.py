"""What changes how gradients are computed, and nothing else: a whole graph computes none."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from stillgraph.passes.regions.operands import tidy_operands
from stillgraph.passes.regions.regions import all_regions, attribute, copied, inlined
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts.rerouting import rerouted
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import checkpointed, closed_over, hooked_inputs, hooked_outputs, module_hooks
from stillgraph.program.program import Program
from stillgraph.program.types import ObjectType


def drop_gradients(program: Program) -> Program:
    """Put what a checkpoint calls in its place, drop hooks and backward passes; say ``detach`` where torch needs it.

    ::

        y = checkpointed(body, (x,), (w,))     →     y = x @ w
        z = rerouted(body, (y,), …)            →     z = y
        handle = y.register_hook(clip)
        z = y.data                             →     z = y.detach()
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        while found := module.graph.find_nodes(op="call_function", target=checkpointed):
            for node in found:
                _inline(module, node)
        for node in list(module.graph.nodes):
            if node.target in (hooked_inputs, hooked_outputs, rerouted):
                _replace(module, node, list(arguments(node)[1]))
            elif node.target is getattr and arguments(node)[1] == "data":
                node.op, node.target, node.args = "call_method", "detach", (arguments(node)[0],)
    _erase_hooks(fresh)
    fresh = tidy_operands(fresh)  # arms that took a hook off were handed its handle
    _erase_hooks(fresh)
    return fresh


def _erase_hooks(program: Program) -> None:
    for module in all_regions(program.graph):
        for node in reversed(list(module.graph.nodes)):
            if _is_hook(node) and not node.users:
                module.graph.erase_node(node)


def _is_hook(node: fx.Node) -> bool:
    """Whether a node registers a hook, takes it off, or makes what is registered."""
    if node.op == "call_method":
        of_handle = bool(node.args) and isinstance(value_of(node.args[0]), ObjectType)
        return str(node.target).startswith("register_") or (node.target == "remove" and of_handle)
    return node.target in (module_hooks, closed_over)


def _inline(module: fx.GraphModule, node: fx.Node) -> None:
    body: Any = attribute(module, arguments(node)[0])
    with module.graph.inserting_before(node):
        results = inlined(module, node, body, (*arguments(node)[1], *arguments(node)[2]))
    _replace(module, node, results)


def _replace(module: fx.GraphModule, node: fx.Node, results: list[Any]) -> None:
    """Replace an operation that gives several values by those values."""
    for user in list(node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(results[arguments(user)[1]])
        module.graph.erase_node(user)
    module.graph.erase_node(node)
