"""Small branches as selections: both arms run, and their results are chosen between."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from torch import fx

from stillgraph.passes.optimise.branches import constant_flag, replace_results
from stillgraph.passes.optimise.cost import is_small
from stillgraph.passes.optimise.movable import is_movable, operations
from stillgraph.passes.regions.regions import Branch, all_regions, call, controls, copied, inlined, outputs
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program


def select_between_small_arms(program: Program) -> Program:
    """Run both arms of a branch that are small, and fail for no values, and choose between their results.

    ::

        y = if p: return x + 1       →     a, b = x + 1, x * 2
            else: return x * 2             y = where(p, a, b)

    The condition is not read then: a loop's body has no branch in it, a GPU does not wait, and `onnxruntime` and
    Inductor see one stretch of operations. What the other arm computes is not looked at, NaN or not.
    """
    fresh = copied(program)
    written = {value_of(each).dim() for node in operations(fresh.graph) for each in written_arguments(node)}
    for module in all_regions(fresh.graph):
        for control in controls(module):
            if isinstance(control, Branch) and _is_selectable(control, written):
                _select(control)
    return fresh


def _is_selectable(branch: Branch, written: Container[int]) -> bool:
    """Whether both arms of a branch may run.

    Args:
        branch: the branch.
        written: the ranks of tensors that are written to in place: a selection is a copy of what an arm hands on.
    """
    flag = value_of(arguments(branch.node)[0])
    if not isinstance(flag, torch.Tensor) or flag.dtype is not torch.bool or flag.dim() != 0:
        return False
    pairs = list(zip(*map(outputs, branch.arms)))
    if not all(_are_alike(*pair) and value_of(pair[0]).dim() not in written for pair in pairs):
        return False
    return all(is_small(arm) and all(map(is_movable, operations(arm))) for arm in branch.arms)


def _are_alike(left: Any, right: Any) -> bool:
    """Whether results of two arms can be chosen between element by element, and no gradient goes through them."""
    values = value_of(left), value_of(right)
    if not all(isinstance(each, torch.Tensor) and not each.requires_grad for each in values):
        return False
    a, b = values
    return a.dtype is b.dtype and a.device == b.device and _sizes(a) == _sizes(b) is not None


def _sizes(value: torch.Tensor) -> tuple[int, ...] | None:
    return tuple(value.shape) if all(type(size) is int for size in value.shape) else None


def _select(branch: Branch) -> None:
    node, flag = branch.node, arguments(branch.node)[0]
    with branch.module.graph.inserting_before(node):
        left, right = (inlined(branch.module, node, arm, branch.operands) for arm in branch.arms)
        chosen = [
            a if a is b else _chosen(node, flag, a, b, like)
            for a, b, like in zip(left, right, node.meta["val"], strict=True)
        ]
    replace_results(branch, chosen)


def _chosen(anchor: fx.Node, flag: fx.Node, left: fx.Node, right: fx.Node, like: torch.Tensor) -> fx.Node:
    """One of two results. Truth values are computed with, as every format can; a known one needs no operation."""
    if like.dtype is not torch.bool:
        return call(anchor, torch.where, (flag, left, right), like)
    if constant_flag(right) is False:
        return call(anchor, torch.logical_and, (flag, left), like)
    if constant_flag(left) is True:
        return call(anchor, torch.logical_or, (flag, right), like)
    other = call(anchor, torch.logical_not, (flag,), like if like.dim() == 0 else value_of(flag))
    first = call(anchor, torch.logical_and, (flag, left), like)
    second = call(anchor, torch.logical_and, (other, right), like)
    return call(anchor, torch.logical_or, (first, second), like)
