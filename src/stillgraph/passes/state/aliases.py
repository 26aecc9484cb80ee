"""Results that share memory with what went in: the targets' branches and loops want results of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.regions import (
    Branch,
    Loop,
    all_regions,
    controls,
    copied,
    outputs,
    placeholders,
    set_outputs,
)
from stillgraph.passes.regions.values import storage_of
from stillgraph.passes.state.growing import expression
from stillgraph.program.program import Program


def separate_aliases(program: Program) -> Program:
    """Clone what a branch or loop would hand out of the memory it was handed, or hand out twice.

    ::

        if p: return x         →     if p: return x.clone()
        else: return x + 1           else: return x + 1
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for control in controls(module):
            _separate_operands(control)
            if isinstance(control, Branch):
                _branch(control)
            else:
                _loop(control)
    return fresh


def _branch(branch: Branch) -> None:
    layouts = [[_layout(value) for value in outputs(arm)] for arm in branch.arms]
    for arm in branch.arms:
        _clone_outputs(arm, [a != b for a, b in zip(*layouts)])


def _loop(loop: Loop) -> None:
    loop.node.args = (*loop.node.args[:2], tuple(_separate_entries(loop)), loop.node.args[3])
    layouts = [[_layout(value) for value in values] for values in (outputs(loop.body), loop.entries)]
    _clone_outputs(loop.body, [a != b or not _is_dense(v) for a, b, v in zip(*layouts, outputs(loop.body))])


def _separate_operands(control: Branch | Loop) -> None:
    """Each operand in memory of its own: of those that share some one stays as it is, the whole of it if it is there.

    torch asks for that once it makes a functional graph of one that writes, and for ONNX.
    """
    homes: dict[int, list[fx.Node]] = {}
    for operand in control.operands:
        memory = storage_of(operand.meta["val"]) if isinstance(operand, fx.Node) else None
        if memory is not None:
            homes.setdefault(memory, []).append(operand)
    wholes = [next((each for each in same if not each.meta["val"]._is_view()), same[0]) for same in homes.values()]
    shared = {operand for same in homes.values() for operand in same} - {*wholes}
    with control.node.graph.inserting_before(control.node):
        operands = tuple(_clone(each) if each in shared else each for each in control.operands)
    control.node.args = (*control.node.args[:3], operands)


def _separate_entries(loop: Loop) -> list[Any]:
    """The entries, each dense and in memory of its own."""
    entries: list[Any] = []
    seen = {storage_of(operand.meta["val"]) for operand in loop.operands if isinstance(operand, fx.Node)}
    for entry in loop.entries:
        memory = storage_of(entry.meta["val"]) if isinstance(entry, fx.Node) else None
        if memory is not None and (memory in seen or not _is_dense(entry)):
            with loop.node.graph.inserting_before(loop.node):
                entry = _clone(entry)
        seen.add(memory)
        entries.append(entry)
    return entries


def _clone_outputs(module: fx.GraphModule, mismatched: list[bool]) -> None:
    seen = {storage_of(node.meta["val"]) for node in placeholders(module)}
    result = []
    for value, differs in zip(outputs(module), mismatched):
        memory = storage_of(value.meta["val"]) if isinstance(value, fx.Node) else None
        if memory is not None and (memory in seen or differs):
            with module.graph.inserting_before(module.graph.output_node()):
                value = _clone(value)
        seen.add(memory)
        result.append(value)
    set_outputs(module, result)


def _clone(node: fx.Node) -> fx.Node:
    clone = node.graph.call_method("clone", (node,), {"memory_format": torch.contiguous_format})
    value = node.meta["val"]
    with value.fake_mode:
        fresh = torch.empty(value.shape, dtype=value.dtype, device=value.device)
    clone.meta.update({k: v for k, v in node.meta.items() if k in ("location", "context")}, val=fresh)
    return clone


def _is_dense(argument: Any) -> bool:
    value = argument.meta["val"] if isinstance(argument, fx.Node) else None
    return not isinstance(value, torch.Tensor) or _known_contiguous(value)


def _layout(argument: Any) -> Any:
    """What two results must agree in beside dtype and shape."""
    value = argument.meta["val"] if isinstance(argument, fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return None
    contiguous = _known_contiguous(value)
    strides = () if contiguous else tuple(expression(stride) for stride in value.stride())
    return contiguous, strides, expression(value.storage_offset())


def _known_contiguous(value: torch.Tensor) -> bool:
    if any(isinstance(size, torch.SymInt) for size in (*value.shape, *value.stride())):
        return False
    return value.is_contiguous()
