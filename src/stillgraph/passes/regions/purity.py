"""What passes know of single operations: whether their result is all they leave."""

from __future__ import annotations

from torch import fx

from stillgraph.passes.regions.marks import LASTING
from stillgraph.program.facts.schemas import draws, is_custom, returns_nothing
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.operations import EFFECTFUL


def is_pure(node: fx.Node) -> bool:
    """Whether a node's only trace is its result."""
    if node.op in ("placeholder", "output"):
        return False
    if node.op == "get_attr":
        return True
    return is_local(node) and not written_arguments(node) and not draws(node)


def is_local(node: fx.Node) -> bool:
    """Whether an operation does nothing but compute, write to its arguments and draw."""
    lasting = node.target in EFFECTFUL or node.target in LASTING
    return not (lasting or is_custom(node.target) or returns_nothing(node.target))
