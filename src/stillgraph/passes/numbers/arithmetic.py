"""Operations on numbers that Python raises for and torch does not: what they need is required before them."""

from __future__ import annotations

from torch import fx

from stillgraph.passes.numbers.arithmetic_rules import Operation, rule_of
from stillgraph.passes.regions.regions import copied
from stillgraph.passes.regions.values import Fakes
from stillgraph.program.graphs import regions
from stillgraph.program.program import Program


def check_arithmetic(program: Program) -> Program:
    """Require what Python's arithmetic needs, wherever it is not known before the run.

    ::

        y = 7 // k        →     require(k != 0, "ZeroDivisionError: integer division or modulo by zero")
                                y = 7 // divisor(k)
        y = 7 // 2        →     y = 7 // 2

    Where a file has no such number as Python has (whole numbers of more than 64 bits by ``**``, ``<<`` and ``int``,
    complex ones), that is required as well: an error is better than another number.
    """
    found = [node for module in regions(program.graph) for node in module.graph.nodes if rule_of(node) is not None]
    if not found:
        return program
    fresh = copied(program)
    fakes = Fakes(fresh.graph)
    for module in regions(fresh.graph):
        for node in list(module.graph.nodes):
            _check(node, fakes)
    return fresh


def _check(node: fx.Node, fakes: Fakes) -> None:
    rule = rule_of(node)
    if rule is not None:
        rule(Operation(node, fakes))
