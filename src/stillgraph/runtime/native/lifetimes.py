"""Lifetimes of variables in a driver: which values nobody asks for once an operation has run."""

from __future__ import annotations

import operator

import torch
from torch import fx

from stillgraph.program.graphs import arguments
from stillgraph.program.operations import try_
from stillgraph.runtime.native.so_far import names_needed

_WITH_REGIONS = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop, try_)


def is_own(node: fx.Node) -> bool:
    """Whether a variable is made by the region itself and is one value of its own."""
    return (
        node.op in ("call_function", "call_method")
        and node.target not in _WITH_REGIONS
        and not (
            node.target is operator.getitem
            and isinstance(arguments(node)[0], fx.Node)
            and arguments(node)[0].target in _WITH_REGIONS
        )
    )


def last_uses(nodes: list[fx.Node], by_name: dict[str, fx.Node]) -> dict[fx.Node, list[fx.Node]]:
    """By a node: the nodes whose values nobody asks for once it has run.

    Args:
        nodes: of a graph, in order.
        by_name: the same by their names, where those count that are looked at if an operation fails.
    """
    last: dict[fx.Node, fx.Node] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            last[used] = node
        for name in names_needed(node) if by_name else ():
            if name in by_name:
                last[by_name[name]] = node
    grouped: dict[fx.Node, list[fx.Node]] = {}
    for used, user in last.items():
        if user.op != "output":
            grouped.setdefault(user, []).append(used)
    return grouped
