"""Results of branches with a size that only the run knows: torch's ``cond`` joins their strides only where it leads."""

from __future__ import annotations

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from stillgraph.passes.regions.regions import (
    Branch,
    all_regions,
    controls,
    copied,
    outputs,
    replace_uses,
    results,
    set_outputs,
)
from stillgraph.program.program import Program


def lead_with_unknown_sizes(program: Program) -> Program:
    """Hand a result with one unknown size out of a branch with that dimension in front.

    ::

        y = if p: return a          →     z = if p: return a.movedim(1, 0)
            else: return b                    else: return b.movedim(1, 0)
                                          y = z.movedim(0, 1)

    ``y`` is ``f32[3, ?]``: its contiguous strides would be an expression of the unknown size, those of ``z`` are not.
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
        dim = _unknown_dimension(value)
        if dim is None:
            continue
        for arm in branch.arms:
            given = outputs(arm)
            with arm.graph.inserting_before(arm.graph.output_node()):
                given[index] = _moved(given[index], dim, 0)
            set_outputs(arm, given)
        with branch.node.graph.inserting_after(result):
            back = branch.node.graph.call_method("movedim", (result, 0, dim))
        back.meta.update(result.meta, val=value)
        replace_uses(result, back)
        with value.fake_mode:
            result.meta["val"] = value.movedim(dim, 0).contiguous()


def _unknown_dimension(value: object) -> int | None:
    """The only dimension of unknown size, if it is not the first."""
    if not isinstance(value, torch.Tensor):
        return None
    unknown = [d for d, s in enumerate(value.shape) if isinstance(s, torch.SymInt) and free_unbacked_symbols(s)]
    return unknown[0] if len(unknown) == 1 and unknown[0] > 0 else None


def _moved(node: fx.Node, source: int, target: int) -> fx.Node:
    value = node.meta["val"]
    moved = node.graph.call_method("movedim", (node, source, target))
    with value.fake_mode:
        moved.meta["val"] = value.movedim(source, target)
        fresh = torch.empty(moved.meta["val"].shape, dtype=value.dtype, device=value.device)
    dense = node.graph.call_method("clone", (moved,), {"memory_format": torch.contiguous_format})
    dense.meta["val"] = fresh
    return dense
