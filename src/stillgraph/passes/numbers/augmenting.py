"""``s += v`` where ``s`` is a tensor on one path and a Python number on the other.

Python changes the tensor, which every name of it sees, and puts a new number in the place of the number. With tensors
alone the two are the same where the tensor has no other name: ``s + v`` then says both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import Branch, Loop, control_of, copied, outputs, placeholders
from stillgraph.passes.regions.values import storage_of
from stillgraph.program.facts.info import info
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program

_PLAIN = MappingProxyType(
    {
        operator.iadd: operator.add,
        operator.isub: operator.sub,
        operator.imul: operator.mul,
        operator.itruediv: operator.truediv,
        operator.ifloordiv: operator.floordiv,
        operator.imod: operator.mod,
        operator.ipow: operator.pow,
        operator.iand: operator.and_,
        operator.ior: operator.or_,
        operator.ixor: operator.xor,
    }
)

Outside = Callable[[fx.Node], bool]


def replace_augmenting(program: Program) -> Program:
    """Let such a statement make a new value on both paths.

    ::

        s = if p: x.sum()              s = if p: x.sum()
            else: as_tensor(0)    →        else: as_tensor(0)
        t = iadd(s, v)                 t = s + v

    Raises:
        ExportError: the tensor may have another name, which would see the change (SG402).
    """
    fresh = copied(program)
    _region(fresh.graph, lambda placeholder: False)
    return fresh


def _region(module: fx.GraphModule, is_alone_outside: Outside) -> None:
    for node in list(module.graph.nodes):
        control = control_of(module, node)
        if isinstance(control, Branch):
            for arm in control.arms:
                _region(arm, _from_branch(control, arm, is_alone_outside))
        elif control is not None:
            for region in control.regions:
                _region(region, _from_loop(control, region, is_alone_outside))
        elif node.target in _PLAIN and _may_be_number(node):
            if not _is_alone(module, arguments(node)[0], node, is_alone_outside):
                raise refuse(
                    "SG402",
                    "a value that is a tensor on one path and a number on the other is changed in place, and may have "
                    "another name",
                    location=node.meta.get("location"),
                    hint="Write s = s + v in place of s += v, or begin with a tensor.",
                )
            node.target = _PLAIN[node.target]


def _may_be_number(node: fx.Node) -> bool:
    left = arguments(node)[0]
    return isinstance(left, fx.Node) and info(left.meta.get("val")).may_be_number


def _is_alone(module: fx.GraphModule, value: Any, user: fx.Node, is_alone_outside: Outside) -> bool:
    """Whether nothing but ``user`` uses what a value holds, in its region and around it."""
    if not isinstance(value, fx.Node):
        return True  # a number
    if set(value.users) - {user} or _shares_memory(module, value, user):
        return False
    if value.op == "placeholder":
        return is_alone_outside(value)
    if value.op != "call_function" or value.target is not operator.getitem:
        return value.op in ("call_function", "call_method") and not written_arguments(value)
    source = arguments(value)[0]
    control = control_of(module, source) if isinstance(source, fx.Node) else None
    if control is None:
        return False  # it may be a view
    index = arguments(value)[1]
    if isinstance(control, Branch):
        given = ((arm, _from_branch(control, arm, is_alone_outside)) for arm in control.arms)
        return all(_is_alone(arm, outputs(arm)[index], arm.graph.output_node(), outside) for arm, outside in given)
    body = control.body
    left = outputs(body)[index]
    stays = left is placeholders(body)[index]
    outside = _from_loop(control, body, is_alone_outside)
    return _is_entry_alone(control, index, is_alone_outside) and (
        stays or _is_alone(body, left, body.graph.output_node(), outside)
    )


def _from_branch(branch: Branch, arm: fx.GraphModule, is_alone_outside: Outside) -> Outside:
    def is_alone(placeholder: fx.Node) -> bool:
        operand = branch.operands[placeholders(arm).index(placeholder)]
        return _is_alone(branch.module, operand, branch.node, is_alone_outside)

    return is_alone


def _from_loop(loop: Loop, region: fx.GraphModule, is_alone_outside: Outside) -> Outside:
    def is_alone(placeholder: fx.Node) -> bool:
        index = placeholders(region).index(placeholder)
        return index < len(loop.entries) and _is_entry_alone(loop, index, is_alone_outside)

    return is_alone


def _is_entry_alone(loop: Loop, index: int, is_alone_outside: Outside) -> bool:
    return _is_alone(loop.module, loop.entries[index], loop.node, is_alone_outside)


def _shares_memory(module: fx.GraphModule, value: fx.Node, user: fx.Node) -> bool:
    """Whether another value of the region is a view of the same memory; results of ``user`` are not looked at."""
    memory = storage_of(value.meta["val"])
    others = (n for n in module.graph.nodes if n not in (value, user) and isinstance(n.meta.get("val"), torch.Tensor))
    return memory is not None and any(storage_of(other.meta["val"]) == memory for other in others)
