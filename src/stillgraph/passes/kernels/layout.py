"""How the results of branches lie in memory.

torch's ``cond`` takes arms whose results lie alike, and joins strides that only the run knows where they are those of
contiguous tensors.
"""

from __future__ import annotations

from collections.abc import Callable
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
    replace_uses,
    results,
    set_outputs,
)
from stillgraph.program.program import Program


def lead_with_unknown_sizes(program: Program) -> Program:
    """Hand contiguous results out of branches, and where one size is unknown, with that dimension in front.

    ::

        y = if p: return a          →     z = if p: return a.movedim(1, 0).contiguous()
            else: return b                    else: return b.movedim(1, 0).contiguous()
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
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.layout is not torch.strided:
            continue
        unknown = _unknown_dimensions(value)
        if len(unknown) == 1 and unknown[0] > 0:
            _led(branch, index, result, unknown[0])
        elif unknown or not all(_is_contiguous(outputs(arm)[index]) for arm in branch.arms):
            _handed_out(branch, index, _dense)
            result.meta["val"] = _contiguous(value)


def _led(branch: Branch, index: int, result: fx.Node, dim: int) -> None:
    value = result.meta["val"]
    _handed_out(branch, index, lambda node: _dense(_moved(node, dim)))
    with branch.node.graph.inserting_after(result):
        back = branch.node.graph.call_method("movedim", (result, 0, dim))
    back.meta.update(result.meta, val=value)
    replace_uses(result, back)
    with value.fake_mode:
        result.meta["val"] = value.movedim(dim, 0).contiguous()


def _handed_out(branch: Branch, index: int, changed: Callable[[fx.Node], fx.Node]) -> None:
    """Let each arm hand out something else."""
    for arm in branch.arms:
        given = outputs(arm)
        with arm.graph.inserting_before(arm.graph.output_node()):
            given[index] = changed(given[index])
        set_outputs(arm, given)


def _unknown_dimensions(value: torch.Tensor) -> list[int]:
    return [d for d, s in enumerate(value.shape) if isinstance(s, torch.SymInt) and free_unbacked_symbols(s)]


def _is_contiguous(given: fx.Node) -> bool:
    return is_contiguous_or_false(given.meta["val"])


def _moved(node: fx.Node, dim: int) -> fx.Node:
    value = node.meta["val"]
    moved = node.graph.call_method("movedim", (node, dim, 0))
    with value.fake_mode:
        moved.meta["val"] = value.movedim(dim, 0)
    return moved


def _dense(node: fx.Node) -> fx.Node:
    value = node.meta["val"]
    dense = node.graph.call_method("clone", (node,), {"memory_format": torch.contiguous_format})
    dense.meta["val"] = _contiguous(value)
    return dense


def _contiguous(value: Any) -> torch.Tensor:
    with value.fake_mode:
        return torch.empty(value.shape, dtype=value.dtype, device=value.device)
