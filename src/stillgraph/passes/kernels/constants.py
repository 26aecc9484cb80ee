"""Tensors made of constants inside branches and loops: `torch.export` keeps constants at the top level only."""

from __future__ import annotations

import torch
from torch import fx

from stillgraph.passes.regions.regions import Control, all_regions, controls, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.program import Program

_MAKERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor})


def hoist_constants(program: Program) -> Program:
    """Make tensors of constants at the top level, and hand them down.

    ::

        if p: y = x + torch.tensor([1, 2])     →     c = torch.tensor([1, 2])
                                                     if p (x, c): y = x + c
        if p: y = x + torch.tensor(1)          →     if p: y = x + torch.full((), 1)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        _fill_scalars(module)
    _region(fresh.graph)
    return fresh


def _fill_scalars(module: fx.GraphModule) -> None:
    """Make a tensor of one number by filling it: that needs no constant, and AOTInductor carries no constant."""
    for node in module.graph.nodes:
        if node.target in _MAKERS and len(node.args) == 1 and type(node.args[0]) in (bool, int, float):
            value = value_of(node)
            node.target, node.args = torch.full, ((), node.args[0])
            node.kwargs = {"dtype": value.dtype, "device": value.device}
    module.recompile()


def _region(module: fx.GraphModule) -> None:
    for control in controls(module):
        for region in control.regions:
            _region(region)
            for node in list(region.graph.nodes):
                if node.target in _MAKERS and not node.all_input_nodes:
                    _hoist(control, node)


def _hoist(control: Control, node: fx.Node) -> None:
    with control.node.graph.inserting_before(control.node):
        outside = control.node.graph.node_copy(node)
    for placeholder in control.add_operand(outside):
        if placeholder.graph is node.graph:
            node.replace_all_uses_with(placeholder)
    node.graph.erase_node(node)
