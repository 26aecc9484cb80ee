"""How the results of branches lie in memory: torch's ``cond`` takes arms whose results lie alike."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._prims_common import is_contiguous_or_false
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from stillgraph.passes.regions.regions import (
    Branch,
    all_regions,
    controls,
    copied,
    outputs,
    results,
    set_outputs,
)
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
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.layout is not torch.strided:
            continue
        if _has_unknown_size(value) or not all(_is_contiguous(outputs(arm)[index]) for arm in branch.arms):
            _handed_out(branch, index)
            result.meta["val"] = _contiguous(value)


def _handed_out(branch: Branch, index: int) -> None:
    """Let each arm hand out a contiguous copy."""
    for arm in branch.arms:
        given = outputs(arm)
        with arm.graph.inserting_before(arm.graph.output_node()):
            given[index] = _dense(given[index])
        set_outputs(arm, given)


def _has_unknown_size(value: torch.Tensor) -> bool:
    return any(isinstance(size, torch.SymInt) and free_unbacked_symbols(size) for size in value.shape)


def _is_contiguous(given: fx.Node) -> bool:
    return is_contiguous_or_false(given.meta["val"])


def _dense(node: fx.Node) -> fx.Node:
    value = node.meta["val"]
    dense = node.graph.call_method("clone", (node,), {"memory_format": torch.contiguous_format})
    dense.meta["val"] = _contiguous(value)
    return dense


def _contiguous(value: Any) -> torch.Tensor:
    with value.fake_mode:
        return torch.empty(value.shape, dtype=value.dtype, device=value.device)
