"""torch's modes: an export computes no gradients, and what autocast does must be part of the graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from stillgraph.passes.regions.regions import COND, WHILE, all_regions, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.context import Context
from stillgraph.program.facts.writes import name_of
from stillgraph.program.program import Program

_GRAD_ONLY = frozenset({"requires_grad_", "retain_grad"})


def settle_modes(program: Program) -> Program:
    """Write the casts of autocast into the graph, and drop what is about gradients alone.

    ::

        y = a @ b   [autocast(cpu, bfloat16)]     →     a_1 = aten._to_copy(a, dtype=bfloat16)
                                                        b_1 = aten._to_copy(b, dtype=bfloat16)
                                                        y = aten.mm(a_1, b_1)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in list(module.graph.nodes):
            if node.op == "call_method" and name_of(node) in _GRAD_ONLY:
                node.replace_all_uses_with(node.all_input_nodes[0])
                module.graph.erase_node(node)
            elif _under_autocast(node):
                _inline(node)
    return fresh


def _under_autocast(node: fx.Node) -> bool:
    context: Context | None = node.meta.get("context")
    if context is None or not context.autocast or node.op not in ("call_function", "call_method"):
        return False
    if node.target in (COND, WHILE) or node.meta.get("bookkeeping"):
        return False
    return all(isinstance(value_of(a), torch.Tensor) for a in node.all_input_nodes)


def _inline(node: fx.Node) -> None:
    """Replace an operation by what autocast makes of it."""
    inputs = node.all_input_nodes
    context: Context = node.meta["context"]

    def run(*values: Any) -> Any:
        given = dict(zip(inputs, values))
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: given[n])
        casts = [torch.autocast(a.device_type, a.dtype, True, False) for a in context.autocast]
        for cast in casts:
            cast.__enter__()
        try:
            if node.op == "call_method":
                return getattr(args[0], str(node.target))(*args[1:], **kwargs)
            return node.target(*args, **kwargs)  # type: ignore[operator]  # fx does not type arguments
        finally:
            for cast in reversed(casts):
                cast.__exit__(None, None, None)

    with torch.no_grad():
        traced = make_fx(run)(*(value_of(a) for a in inputs))
    made: dict[fx.Node, Any] = dict(zip(traced.graph.find_nodes(op="placeholder"), inputs))
    with node.graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "call_function":
                made[inner] = node.graph.node_copy(inner, lambda n: made[n])
                made[inner].meta.update({k: node.meta[k] for k in ("location",) if k in node.meta})
    result: Any = fx.map_arg(traced.graph.output_node().args[0], lambda n: made[n])
    if isinstance(result, fx.Node):
        node.replace_all_uses_with(result)
    else:  # several results: each is taken out by its own node
        for user in list(node.users):
            user.replace_all_uses_with(result[user.args[1]])  # a getitem
            node.graph.erase_node(user)
    node.graph.erase_node(node)
