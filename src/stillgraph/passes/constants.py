"""Tensors made of constants inside branches and loops: `torch.export` keeps constants at the top level only."""

from __future__ import annotations

import torch
from torch import fx

from stillgraph.passes.regions import Control, controls, copied
from stillgraph.program.program import Program

_MAKERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor})


def hoist_constants(program: Program) -> Program:
    """Make tensors of constants at the top level, and hand them down.

    ::

        if p: y = x + torch.tensor([1, 2])     →     c = torch.tensor([1, 2])
                                                     if p (x, c): y = x + c
    """
    fresh = copied(program)
    _region(fresh.graph)
    return fresh


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
