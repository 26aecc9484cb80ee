"""What branches and loops are handed: each value once, and only what they use; and what branches hand out."""

from __future__ import annotations

import functools
from typing import Any

from torch import fx

from stillgraph.passes.regions.dead_code import sweep
from stillgraph.passes.regions.regions import Branch, Control, Loop, control_of, controls, copied, placeholders, results
from stillgraph.program.program import Program


def tidy_operands(program: Program) -> Program:
    """Hand nothing to a branch or loop twice, nor what none of its regions uses; nothing out of a branch for nobody.

    ::

        y, _ = if p (x, x, z): return a + b, b     →     y = if p (x): return a + a
    """
    fresh = copied(program)
    _region(fresh.graph)
    return fresh


def _region(module: fx.GraphModule) -> None:
    for control in reversed([*controls(module)]):
        if isinstance(control, Branch):
            _hand_out_used(control)
        _merge(control)
        for region in control.regions:
            _region(region)
        _drop_unused(control)


def _hand_out_used(branch: Branch) -> None:
    used = [index for index, result in sorted(results(branch.node).items()) if result.users]
    if not used or len(used) == len(branch.node.meta["val"]):
        return  # without any it is there for what it does
    branch.keep_outputs(used)
    for arm in branch.arms:
        sweep(arm)


def _inner(control: Control, index: int) -> list[fx.Node]:
    """The placeholders of an operand in all regions."""
    before = len(control.entries) if isinstance(control, Loop) else 0
    return [placeholders(region)[before + index] for region in control.regions]


def bind_constants(control: Control) -> None:
    """Let regions have constants themselves, rather than be handed them: an operand is a node."""
    for index in reversed(range(len(control.operands))):
        value = control.operands[index]
        if isinstance(value, fx.Node):
            continue
        for inner, region in zip(_inner(control, index), control.regions):
            for user in list(inner.users):
                bound = functools.partial(_bound, inner, value)
                user.args, user.kwargs = fx.map_arg(user.args, bound), fx.map_arg(user.kwargs, bound)
                within = control_of(region, user)
                if within is not None:
                    bind_constants(within)
        control.drop_operand(index)


def _bound(inner: fx.Node, value: Any, node: fx.Node) -> Any:
    return value if node is inner else node


def _merge(control: Branch | Loop) -> None:
    for index in reversed(range(len(control.operands))):
        first = control.operands.index(control.operands[index])
        if first != index:
            for kept, dropped in zip(_inner(control, first), _inner(control, index)):
                dropped.replace_all_uses_with(kept)
            control.drop_operand(index)


def _drop_unused(control: Branch | Loop) -> None:
    for index in reversed(range(len(control.operands))):
        if not any(node.users for node in _inner(control, index)):
            control.drop_operand(index)
