"""Writes to a slice of which only the run knows the bounds, in a form that Inductor takes.

Inductor (torch 2.13) wants to know whether a bound counts from the end. Of positions in a tensor it asks nothing.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, fx

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts.schemas import writes
from stillgraph.program.program import Program


def write_at_places(program: Program) -> Program:
    """Let writes to a slice of unknown bounds name the places instead.

    ::

        t[:n] = v     →     t[torch.arange(len(t))[:n]] = v

    Args:
        program: a lowered one.
    """
    fresh = copied(program)
    for region in all_regions(fresh.graph):
        _read_once(region.graph)
        for node in region.graph.find_nodes(op="call_function", target=operator.setitem):
            if _has_one_open_slice(node):
                node.target = set_places
        region.recompile()
    return fresh


def set_places(tensor: Tensor, index: Any, value: Any) -> None:
    """``tensor[index] = value``, the one slice in ``index`` whose bounds are unknown as a tensor of places."""
    parts = list(index) if isinstance(index, (tuple, list)) else [index]
    place = next(i for i, part in enumerate(parts) if isinstance(part, slice) and _is_open(part))
    before, behind = parts[:place], parts[place + 1 :]
    dim = -1 - _dimensions(behind) if ... in before else _dimensions(before)
    parts[place] = torch.arange(tensor.shape[dim], device=tensor.device)[parts[place]]
    tensor[tuple(parts)] = value


def _dimensions(parts: list[Any]) -> int:
    """How many dimensions the parts of an index are about."""
    return sum(part is not None and part is not ... for part in parts)


def _has_one_open_slice(node: fx.Node) -> bool:
    index = node.args[1]
    parts = index if isinstance(index, (tuple, list)) else (index,)
    slices = [part for part in parts if isinstance(part, slice) and _is_open(part)]
    others = (value_of(part) for part in parts if not isinstance(part, slice))
    return len(slices) == 1 and all(part is None or part is ... or type(part) is int for part in others)


def _is_open(part: slice) -> bool:
    bounds = (value_of(bound) for bound in (part.start, part.stop, part.step))
    return any(isinstance(bound, torch.SymInt) for bound in bounds)


def _read_once(graph: fx.Graph) -> None:
    """Let a number that is read twice out of a tensor be one number: torch takes the second for another."""
    read: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        if node.op == "call_method" and node.target == "item":
            first = read.setdefault(node.args[0], node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph.erase_node(node)
        elif writes(node):
            read.clear()
