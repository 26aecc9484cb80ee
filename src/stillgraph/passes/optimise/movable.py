"""Which operations may run at another place, or oftener, than the program has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from stillgraph.passes.exceptions.failing import is_total
from stillgraph.passes.regions.purity import is_pure
from stillgraph.passes.regions.regions import COND, WHILE, all_nodes
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts import torch_symbols
from stillgraph.program.facts.info import info
from stillgraph.program.facts.writes import writes_in_place
from stillgraph.program.program import Program


def is_movable(node: fx.Node) -> bool:
    """Whether an operation can run where the program does not run it, and nobody notices.

    It computes tensors of sizes that are known, leaves nothing behind, fails for no values, and no gradient goes
    through it: where one does, the sum of its parts would be rounded in another order.
    """
    if node.op not in ("call_function", "call_method") or node.target in (COND, WHILE):
        return False
    values = [node.meta.get("val"), *map(value_of, node.all_input_nodes)]
    return all(map(_is_settled, values)) and is_pure(node) and is_total(node)


def _is_settled(value: Any) -> bool:
    """Whether a value is a tensor, or several, of known sizes, without a gradient."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_settled, value))
    if not isinstance(value, torch.Tensor) or value.requires_grad or info(value).grad_differs:
        return False
    return not any(isinstance(size, torch.SymInt) and torch_symbols.free_unbacked_symbols(size) for size in value.shape)


def writes(program: Program) -> bool:
    """Whether a program writes to tensors in place, so that one operation gives different results at two places."""
    return writes_in_place(program.graph)


def operations(module: fx.GraphModule) -> Iterator[fx.Node]:
    """What a region and those in it compute: all but operands, results and constants."""
    return (node for node in all_nodes(module) if node.op in ("call_function", "call_method"))
