"""The cost model: what the optimiser takes operations to cost. The one place with its numbers."""

from __future__ import annotations

import torch
from torch import fx

from stillgraph.passes.exceptions.failing import is_pointwise
from stillgraph.passes.optimise.movable import operations
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts.writes import name_of

_FEW_OPERATIONS = 8
"""A branch costs an interpreter, and torch's and onnxruntime's own loops, about what so many small operations do."""
_FEW_ELEMENTS = 1024
"""An operation on so many elements costs about what its call costs."""
_OTHERS = frozenset(
    {
        *("full", "scalar_tensor", "full_like", "zeros_like", "ones_like", "to", "clone"),
        *("truediv", "and_", "or_", "xor", "invert", "not_"),  # Python's names of operators
        *("all", "any", "sum", "mean", "amax", "amin"),
    }
)


def is_small(region: fx.GraphModule) -> bool:
    """Whether running a region for nothing costs less than a branch around it: few operations, each on few elements."""
    found = list(operations(region))
    return len(found) <= _FEW_OPERATIONS and all(_is_cheap(node) for node in found)


def _is_cheap(node: fx.Node) -> bool:
    values = [node.meta.get("val"), *map(value_of, node.all_input_nodes)]
    counts = [each.numel() for each in values if isinstance(each, torch.Tensor)]
    is_known = is_pointwise(name_of(node)) or name_of(node) in _OTHERS
    return is_known and all(type(count) is int and count <= _FEW_ELEMENTS for count in counts)
