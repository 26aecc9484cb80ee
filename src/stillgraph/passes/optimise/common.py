"""Common subexpressions: what is computed twice of the same values, in a region or in one inside it."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.passes.optimise.branches import written
from stillgraph.passes.optimise.movable import writes
from stillgraph.passes.regions.purity import is_pure
from stillgraph.passes.regions.regions import (
    COND,
    WHILE,
    Branch,
    Loop,
    control_of,
    copied,
    placeholders,
)
from stillgraph.program.program import Program

_Seen = dict[Any, fx.Node]


def share_common(program: Program) -> Program:
    """Compute once what a program computes twice of the same values.

    ::

        a = sin(x) + 1               a = sin(x)
        if p: b = sin(x)       →     b = a + 1
                                     if p (a): …

    What a region gives is left alone: two results that are one tensor are another thing than two that are equal.
    """
    if writes(program):
        return program
    fresh = copied(program)
    _share(fresh.graph, {}, {})
    return fresh


def _share(module: fx.GraphModule, names: dict[fx.Node, Any], seen: _Seen) -> _Seen:
    """Share what a region computes.

    Args:
        module: the region.
        names: for the placeholders that stand for values from outside, what identifies those.
        seen: what is computed outside, by what identifies it.

    Returns:
        What the region computes.
    """
    names, mine = dict(names), _Seen()
    for node in list(module.graph.nodes):
        control = control_of(module, node)
        if isinstance(control, Branch):
            for place in range(2):
                _share_in_arm(control, place, names, {**seen, **mine})
        elif isinstance(control, Loop):
            for region in control.regions:
                _share(region, {}, {})
        names.setdefault(node, node)
        if not _is_shared(node):
            continue
        key = (node.op, node.target, written(node.args, names), written(node.kwargs, names), node.meta.get("context"))
        if key in mine:
            node.replace_all_uses_with(mine[key])
            module.graph.erase_node(node)
        else:
            mine[key] = node
            names[node] = seen.get(key, node)
    return mine


def _share_in_arm(branch: Branch, place: int, names: dict[fx.Node, Any], seen: _Seen) -> None:
    arm = branch.arms[place]
    outer = zip(placeholders(arm), branch.operands, strict=True)
    inside = {inner: names[value] for inner, value in outer if isinstance(value, fx.Node) and value in names}
    for key, node in _share(arm, inside, seen).items():
        known = seen.get(key)
        if known is not None and known.graph is branch.node.graph:
            node.replace_all_uses_with(branch.add_operand(known)[place])
            arm.graph.erase_node(node)


def _is_shared(node: fx.Node) -> bool:
    if node.op not in ("call_function", "call_method") or node.target in (COND, WHILE) or not is_pure(node):
        return False
    handed_on = any(user.op == "output" or user.target is WHILE for user in node.users)
    return bool(node.all_input_nodes) and isinstance(node.meta.get("val"), torch.Tensor) and not handed_on
