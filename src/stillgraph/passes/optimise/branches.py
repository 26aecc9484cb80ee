"""Branches that are none: both arms are equal, or the condition is known where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.regions import (
    Branch,
    all_regions,
    attribute,
    control_of,
    controls,
    copied,
    inlined,
    placeholders,
    replace_by,
    results,
)
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program

Known = Mapping[fx.Node, bool]


def join_equal_arms(program: Program) -> Program:
    """Do once, without a branch, what both arms do.

    ::

        y = if p: return sin(x)           →     y = sin(x)
            else: return sin(x)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for control in controls(module):
            if isinstance(control, Branch) and _are_equal(*control.arms):
                replace_by_arm(control, 0)
    return fresh


def settle_conditions(program: Program) -> Program:
    """Take the arm that runs anyway where a condition is a constant, or that of a branch around it.

    ::

        if p: if p: return x        →     if p: return x
              else: return y              else: …
        else: …
    """
    fresh = copied(program)
    _settle(fresh.graph, {})
    return fresh


def replace_by_arm(branch: Branch, arm: int) -> None:
    """Put what one arm does in the place of a branch."""
    with branch.module.graph.inserting_before(branch.node):
        given = inlined(branch.module, branch.node, branch.arms[arm], branch.operands)
    replace_results(branch, given)


def replace_results(branch: Branch, given: Sequence[Any]) -> None:
    """Let nodes or constants stand for the results of a branch, which goes."""
    for index, result in results(branch.node).items():
        replace_by(result, given[index])
    branch.module.graph.erase_node(branch.node)


# ---- arms that are equal
def _are_equal(left: fx.GraphModule, right: fx.GraphModule) -> bool:
    """Whether two regions compute the same from their operands, operation by operation."""
    ours, theirs = list(left.graph.nodes), list(right.graph.nodes)
    if len(ours) != len(theirs):
        return False
    places = ({node: place for place, node in enumerate(nodes)} for nodes in (ours, theirs))
    mine, other = places
    return all(
        a.op == b.op
        and (_holds_same(left, a, right, b) if a.op == "get_attr" else a.op == "placeholder" or a.target == b.target)
        and a.meta.get("context") == b.meta.get("context")
        and written(a.args, mine) == written(b.args, other)
        and written(a.kwargs, mine) == written(b.kwargs, other)
        for a, b in zip(ours, theirs)
    )


def _holds_same(left: fx.GraphModule, ours: fx.Node, right: fx.GraphModule, theirs: fx.Node) -> bool:
    mine, other = attribute(left, ours), attribute(right, theirs)
    if isinstance(mine, fx.GraphModule) and isinstance(other, fx.GraphModule):
        return _are_equal(mine, other)
    return mine is other


def written(value: Any, names: Mapping[fx.Node, Any]) -> Any:
    """Arguments as something that is equal for equal ones alone: 1, 1.0 and True are three constants."""
    if isinstance(value, fx.Node):
        return ("node", names[value])
    if isinstance(value, (tuple, list)):
        return (type(value), *(written(each, names) for each in value))
    if isinstance(value, dict):
        return tuple((key, written(each, names)) for key, each in value.items())
    if isinstance(value, slice):
        return ("slice", *(written(each, names) for each in (value.start, value.stop, value.step)))
    return (type(value), repr(value) if isinstance(value, (float, complex)) else value)


# ---- conditions that are known
def _settle(module: fx.GraphModule, known: Known) -> None:
    facts = dict(known)
    for node in list(module.graph.nodes):
        constant = constant_flag(node)
        if constant is not None:
            facts[node] = constant
        control = control_of(module, node)
        if control is None:
            continue
        flag = arguments(node)[0] if isinstance(control, Branch) else None
        if isinstance(control, Branch) and flag in facts:
            arm = control.arms[0 if facts[flag] else 1]
            _settle(arm, _inside(arm, control.operands, facts))
            replace_by_arm(control, 0 if facts[flag] else 1)
            continue
        before = 0 if isinstance(control, Branch) else len(control.entries)
        for place, region in enumerate(control.regions):
            learnt = {**facts, **(_learnt(flag, place == 0) if isinstance(flag, fx.Node) else {})}
            _settle(region, _inside(region, control.operands, learnt, before))


def _inside(region: fx.GraphModule, operands: Sequence[Any], facts: Known, before: int = 0) -> Known:
    """What is known of a region's placeholders, by what it is of the operands behind the first ``before``."""
    pairs = zip(placeholders(region)[before:], operands)
    return {inner: facts[outer] for inner, outer in pairs if isinstance(outer, fx.Node) and outer in facts}


def constant_flag(node: fx.Node) -> bool | None:
    """The truth value that a node is, if it makes one of a constant."""
    if name_of(node) != "full" or node.kwargs.get("dtype") is not torch.bool or len(node.args) < 2:
        return None
    shape, value = arguments(node)[:2]
    return value if tuple(shape) == () and isinstance(value, bool) else None


def _learnt(flag: fx.Node, holds: bool) -> dict[fx.Node, bool]:
    """What follows from a condition: of both sides of a conjunction that holds, of what is negated, and so on."""
    facts, name = {flag: holds}, name_of(flag)
    parts = [each for each in flag.args if isinstance(each, fx.Node) and _is_flag(each)]
    if name == "logical_not":
        facts.update({fact: value for part in parts for fact, value in _learnt(part, not holds).items()})
    if name == ("logical_and" if holds else "logical_or"):
        facts.update({fact: value for part in parts for fact, value in _learnt(part, holds).items()})
    return facts


def _is_flag(node: fx.Node) -> bool:
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.dtype is torch.bool and value.dim() == 0
