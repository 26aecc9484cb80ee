"""Printing: a saved program has nowhere to print to."""

from __future__ import annotations

from stillgraph.passes.regions import all_regions, copied
from stillgraph.program.operations import print_
from stillgraph.program.program import Program


def drop_printing(program: Program) -> Program:
    """Drop every ``print``.

    ::

        print_(None, [y], {})     →     (nothing)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in module.graph.find_nodes(op="call_function", target=print_):
            module.graph.erase_node(node)
    return fresh


def prints(program: Program) -> bool:
    """Whether a program prints."""
    return any(m.graph.find_nodes(op="call_function", target=print_) for m in all_regions(program.graph))
