"""Printing, logging and warning: a saved program has nobody to tell."""

from __future__ import annotations

from torch import fx

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.acts import Logging, Warning_
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import act, print_, settle
from stillgraph.program.program import Program


def drop_printing(program: Program) -> Program:
    """Drop every ``print``, what is logged, and warnings; and what Python's objects are told before such a step.

    ::

        settle(0, [n])
        print_(None, [y], {})     →     (nothing)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in [each for each in module.graph.nodes if _tells(each) or each.target is settle]:
            module.graph.erase_node(node)
    return fresh


def prints(program: Program) -> bool:
    """Whether a program prints, logs or warns."""
    return first_told(program) is not None


def first_told(program: Program) -> fx.Node | None:
    """An operation that prints, logs or warns, if a program has one."""
    nodes = (node for module in regions(program.graph) for node in module.graph.nodes)
    return next((node for node in nodes if _tells(node)), None)


def _tells(node: fx.Node) -> bool:
    told = node.target is act and isinstance(value_of(arguments(node)[0]), (Logging, Warning_))
    return told or node.target is print_
