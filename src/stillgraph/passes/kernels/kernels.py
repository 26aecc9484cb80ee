"""Operations of which eager PyTorch chooses a kernel by sizes that a program leaves open."""

from __future__ import annotations

import torch
from torch import fx

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.program import Program

_BY_SIZE = "use_mm_for_euclid_dist_if_necessary"
_EXACT = "donot_use_mm_for_euclid_dist"


def choose_kernels(program: Program) -> Program:
    """Name the kernel that is right for every size, where torch would take the example's sizes for all.

    ::

        torch.cdist(x, y)     →     torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")

    Eager PyTorch multiplies matrices for more than 25 points, which rounds differently.
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in module.graph.find_nodes(op="call_function", target=torch.cdist):
            if _is_open(node):
                node.kwargs = {**node.kwargs, "compute_mode": _EXACT}
    return fresh


def _is_open(node: fx.Node) -> bool:
    if node.kwargs.get("compute_mode") != _BY_SIZE:
        return False
    points = [value_of(each).shape[-2] for each in node.all_input_nodes[:2]]
    return any(type(size) is not int for size in points)
