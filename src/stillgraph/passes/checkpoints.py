"""Checkpoints: they change when gradients are computed, and a whole graph computes none."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from stillgraph.passes.regions import all_regions, attribute, copied, outputs, placeholders
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import checkpointed
from stillgraph.program.program import Program


def inline_checkpoints(program: Program) -> Program:
    """Put what a checkpoint calls in its place.

    ::

        y = checkpointed(body, (x,), (w,))     →     y = x @ w
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        while found := module.graph.find_nodes(op="call_function", target=checkpointed):
            for node in found:
                _inline(module, node)
    return fresh


def _inline(module: fx.GraphModule, node: fx.Node) -> None:
    body: Any = attribute(module, arguments(node)[0])
    made: dict[fx.Node, Any] = dict(zip(placeholders(body), (*arguments(node)[1], *arguments(node)[2]), strict=True))
    with module.graph.inserting_before(node):
        for inner in body.graph.nodes:
            if inner.op in ("placeholder", "output"):
                continue
            made[inner] = module.graph.node_copy(inner, lambda n: made[n])
            if inner.op == "get_attr":
                name = f"{node.name}_{str(inner.target).replace('.', '_')}"
                setattr(module, name, attribute(body, inner))
                made[inner].target = name
    results = [made.get(value, value) if isinstance(value, fx.Node) else value for value in outputs(body)]
    for user in list(node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(results[arguments(user)[1]])
        module.graph.erase_node(user)
    module.graph.erase_node(node)
