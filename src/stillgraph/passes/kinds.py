"""Numbers of which the kind is another on another path: one tensor cannot stand for both."""

from __future__ import annotations

from typing import Any

from torch import fx

from stillgraph.passes.regions import Branch, Control, all_regions, controls, outputs, placeholders
from stillgraph.passes.values import kind_of, value_of
from stillgraph.program.operations import as_tensor


def mixes_kinds(graph: fx.GraphModule) -> bool:
    """Whether a branch or loop gives ``int`` on one path and ``float`` on another, say, or a number and a tensor."""
    regions = list(all_regions(graph))
    if any(node.target is as_tensor for region in regions for node in region.graph.nodes):
        return True  # where a number meets the tensor of another path
    return any(_mixes(control) for region in regions for control in controls(region))


def mixed_results(graph: fx.GraphModule) -> dict[int, type]:
    """The outputs that are numbers of one kind on some path and of another on others, and the kind a tensor has."""
    values = enumerate(map(value_of, outputs(graph)))
    return {at: kind for at, value in values if getattr(value, "stillgraph_mixed", False) and (kind := kind_of(value))}


def _mixes(control: Control) -> bool:
    if isinstance(control, Branch):
        return any(_differ(pair) for pair in zip(*map(outputs, control.arms), strict=True))
    inside = placeholders(control.body)[: len(control.entries)]
    return any(_differ(each) for each in zip(control.entries, inside, outputs(control.body), strict=True))


def _differ(values: tuple[Any, ...]) -> bool:
    return len({kind_of(value_of(value)) for value in values}) > 1
