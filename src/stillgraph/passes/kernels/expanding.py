"""`expand` of a size that only the run knows: `torch.export` takes it for the size that is asked for, never for 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true, sym_or

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.program.program import Program


def expand_unknown_sizes(program: Program) -> Program:
    """Expand a dimension of unknown size by an index, which serves the size 1 and the size that is asked for.

    ::

        y = x.expand(n, -1)     →     y = expanded(x, n, -1)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in module.graph.nodes:
            sizes = _sizes(node)
            if sizes is not None:
                node.args, node.kwargs = (node.args[0], *sizes), {}
                node.op, node.target = "call_function", expanded
        module.recompile()
    return fresh


_EXPANDING = (("call_method", "expand"), ("call_function", torch.broadcast_to))


def _sizes(node: fx.Node) -> Sequence[Any] | None:
    """What a node expands a tensor to, if only the run knows whether it does."""
    if (node.op, node.target) not in _EXPANDING:
        return None
    sizes = node.args[1:] or (node.kwargs.get("size"),)
    tensor = node.args[0]
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = tuple(sizes[0])
    if not isinstance(tensor, fx.Node) or "val" not in tensor.meta or "val" not in node.meta:
        return None
    given, made = tensor.meta["val"].shape, node.meta["val"].shape
    if len(sizes) != len(made):
        return None
    pairs = zip(given, made[len(made) - len(given) :])
    unknown = any(_is_unknown(a) and not statically_known_true(a == b) for a, b in pairs)
    return sizes if unknown else None


def _is_unknown(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and bool(free_unbacked_symbols(size))


def expanded(tensor: torch.Tensor, *sizes: Any) -> torch.Tensor:
    """``tensor.expand(sizes)``, also where `torch.export` cannot tell whether a size is 1.

    Raises:
        RuntimeError: a size is neither 1 nor the size that is asked for.
    """
    lead = len(sizes) - tensor.dim()
    for dim, size in enumerate(sizes[lead:]):
        own = tensor.shape[dim]
        if not _is_unknown(own) or statically_known_true(size == -1) or statically_known_true(own == size):
            continue
        torch._check(sym_or(own == size, own == 1))
        index = torch.arange(size, device=tensor.device).clamp(max=own - 1)
        tensor = tensor.index_select(dim, index)
    return tensor.expand(sizes)
