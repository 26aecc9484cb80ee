"""How the results of branches lie in memory: torch's ``cond`` takes arms whose results lie alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._prims_common import is_contiguous_or_false
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import (
    Branch,
    Control,
    all_regions,
    controls,
    copied,
    outputs,
    results,
    set_outputs,
)
from stillgraph.passes.regions.values import value_of
from stillgraph.program.program import Program


def contiguous_branch_results(program: Program) -> Program:
    """Hand contiguous results out of branches, where a size is unknown or an arm's result is not contiguous.

    ::

        y = if p: return a.t()          →     y = if p: return a.t().contiguous()
            else: return b                        else: return b.contiguous()
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for control in controls(module):
            if isinstance(control, Branch):
                _branch(control)
    return fresh


def _branch(branch: Branch) -> None:
    for index, result in results(branch.node).items():
        value = result.meta["val"]
        if _is_laid_out(value) and (_has_unknown_size(value) or not _are_contiguous(_given(branch, index))):
            _handed_out(branch, index)
            result.meta["val"] = _contiguous(value)


def refuse_asked_layouts(program: Program) -> Program:
    """Refuse a program that asks how a tensor lies in memory, if a branch or loop may leave one in several ways.

    ::

        y = if p: return a.t()          →     SG402
            else: return b
        n = y.stride(0)

    The file would have contiguous copies, so it would answer for these.

    Raises:
        ExportError: it does.
    """
    asking = [node for module in all_regions(program.graph) for node in module.graph.nodes if _asks(node)]
    if asking and any(map(_may_lie_otherwise, (each for m in all_regions(program.graph) for each in controls(m)))):
        message = "the program asks how a tensor lies in memory, which depends on a branch or loop"
        hint = "Call contiguous() on what each side of the branch, or each iteration, gives; or save as .py."
        raise refuse("SG402", message, location=asking[0].meta.get("location"), hint=hint)
    return program


_ASKING = frozenset({"stride", "is_contiguous", "storage_offset", "as_strided", "as_strided_"})
"""What asks, and what reads memory as it lies. Only what the capture did not know is in a program."""


def _asks(node: fx.Node) -> bool:
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", None)
    return node.op.startswith("call_") and name in _ASKING and not isinstance(value_of(node), (bool, int))


def _may_lie_otherwise(control: Control) -> bool:
    if isinstance(control, Branch):
        return not all(_are_contiguous(_given(control, index)) for index in results(control.node))
    return not _are_contiguous([*control.entries, *outputs(control.body)])


def _given(branch: Branch, index: int) -> list[Any]:
    return [outputs(arm)[index] for arm in branch.arms]


def _are_contiguous(given: Sequence[Any]) -> bool:
    """Whether those that are tensors with several dimensions are known to be contiguous."""
    values = [value_of(each) for each in given if isinstance(each, fx.Node)]
    return all(is_contiguous_or_false(value) for value in values if _is_laid_out(value))


def _is_laid_out(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 1 and value.layout is torch.strided


def _handed_out(branch: Branch, index: int) -> None:
    """Let each arm hand out a contiguous copy."""
    for arm in branch.arms:
        given = outputs(arm)
        with arm.graph.inserting_before(arm.graph.output_node()):
            given[index] = _dense(given[index])
        set_outputs(arm, given)


def _has_unknown_size(value: torch.Tensor) -> bool:
    return any(isinstance(size, torch.SymInt) and free_unbacked_symbols(size) for size in value.shape)


def _dense(node: fx.Node) -> fx.Node:
    value = node.meta["val"]
    dense = node.graph.call_method("clone", (node,), {"memory_format": torch.contiguous_format})
    dense.meta["val"] = _contiguous(value)
    return dense


def _contiguous(value: Any) -> torch.Tensor:
    with value.fake_mode:
        return torch.empty(value.shape, dtype=value.dtype, device=value.device)
