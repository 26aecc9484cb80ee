"""Assertions where a target has none: the outputs are read through an index that is out of bounds when one fails."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.passes.numbers.indexing import GET
from stillgraph.passes.regions.regions import outputs, set_outputs
from stillgraph.passes.regions.values import Fakes


def gate_outputs(module: fx.GraphModule) -> None:
    """Replace assertions at the top level by gates before the outputs.

    ::

        torch._assert_async(fine, "…")     →     gate = zeros(1)[(~fine).to(int64)]
        return y                                 return y.unsqueeze(0)[gate]

    The gate is read out of a tensor of its own: an index into a result without elements is not looked at.

    Args:
        module: changed in place; all its outputs are tensors, and there is one.
    """
    graph = module.graph
    fakes = Fakes(module)
    checks = graph.find_nodes(op="call_function", target=torch._assert_async)
    if not checks:
        return
    with graph.inserting_before(graph.output_node()):
        fine = _node(graph, torch.ones, ((),), {"dtype": torch.bool}, fakes.scalar(bool))
        for check in checks:
            fine = _node(graph, torch.logical_and, (fine, check.args[0]), {}, fakes.scalar(bool))
        wrong = _node(graph, torch.logical_not, (fine,), {}, fakes.scalar(bool))
        place = _node(graph, "to", (wrong, torch.int64), {}, fakes.scalar(int))
        like: Any = fakes.scalar(int)
        with like.fake_mode:
            one = like.unsqueeze(0)
        zero = _node(graph, torch.zeros, ((1,),), {"dtype": torch.int64}, one)
        gate = _node(graph, GET, (zero, [place]), {}, like)
        gated = []
        for value in outputs(module):
            like = value.meta["val"]
            with like.fake_mode:
                longer = like.unsqueeze(0)
            row = _node(graph, torch.unsqueeze, (value, 0), {}, longer)
            gated.append(_node(graph, GET, (row, [gate]), {}, fakes.like(like)))
    set_outputs(module, gated)
    for check in checks:
        graph.erase_node(check)


def _node(graph: fx.Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> fx.Node:
    op = "call_method" if isinstance(target, str) else "call_function"
    node = graph.create_node(op, target, args, kwargs)
    node.meta["val"] = value
    return node
