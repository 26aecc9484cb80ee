"""Dead code: operations whose results nobody uses."""

from __future__ import annotations

from torch import fx

from stillgraph.passes.regions.purity import is_pure
from stillgraph.passes.regions.regions import all_regions, control_of, copied
from stillgraph.program.program import Program


def drop_dead_code(program: Program) -> Program:
    """Drop pure operations without users, branches and loops of only such included.

    ::

        y = x * 2          →     return x
        return x
    """
    if not any(_is_dead(module, node) for module in all_regions(program.graph) for node in module.graph.nodes):
        return program
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        sweep(module)
    return fresh


def sweep(module: fx.GraphModule) -> None:
    """Drop the dead code of one region, but not of those in it."""
    for node in reversed(list(module.graph.nodes)):
        if _is_dead(module, node):
            module.graph.erase_node(node)


def _is_dead(module: fx.GraphModule, node: fx.Node) -> bool:
    return not node.users and _is_pure(module, node)


def _is_pure(module: fx.GraphModule, node: fx.Node) -> bool:
    control = control_of(module, node)
    if control is None:
        return is_pure(node)
    return all(
        inner.op in ("placeholder", "output") or _is_pure(region, inner)
        for region in control.regions
        for inner in region.graph.nodes
    )
