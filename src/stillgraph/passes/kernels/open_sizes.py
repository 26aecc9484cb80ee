"""Operations that `torch.export` takes for the example's sizes alone, though they are open.

Of `expand` it takes a size that only the run knows for the size that is asked for, never for 1. The code of others, in
C++, asks for sizes as plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true, sym_or

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.program.program import Program


def write_out_for_open_sizes(program: Program) -> Program:
    """Write such operations in others that serve every size.

    ::

        y = x.expand(n, -1)                       →     y = expanded(x, n, -1)
        y = torch.take_along_dim(x, i, dim=1)     →     y = taken_along(x, i, dim=1)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in module.graph.nodes:
            if (node.op, node.target) in _EXPANDING and (sizes := _sizes(node)) is not None:
                node.args, node.kwargs = (node.args[0], *sizes), {}
                node.op, node.target = "call_function", expanded
            elif (node.op, node.target) in _TAKING and _is_written_out(node):
                node.op, node.target = "call_function", taken_along
        module.recompile()
    return fresh


_EXPANDING = (("call_method", "expand"), ("call_function", torch.broadcast_to))
_TAKING = (("call_method", "take_along_dim"), ("call_function", torch.take_along_dim))


def _sizes(node: fx.Node) -> Sequence[Any] | None:
    """What a node expands a tensor to, if only the run knows whether it does."""
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


def _is_written_out(node: fx.Node) -> bool:
    """Whether a size is open in what `torch.take_along_dim` is given, and it is known of each what is stretched."""
    nodes = node.all_input_nodes  # each once: ``x.take_along_dim(x)`` has one
    shapes = [each.meta["val"].shape for each in (nodes[0], nodes[min(1, len(nodes) - 1)])]
    dim: Any = node.kwargs.get("dim", node.args[2] if len(node.args) > 2 else None)
    if not any(isinstance(size, torch.SymInt) for shape in shapes for size in shape):
        return False
    pairs = [] if dim is None else [each for axis, each in enumerate(zip(*shapes)) if axis != dim % len(shapes[0])]
    return all(statically_known_true(a == b) or (_is_clear(a) and _is_clear(b)) for a, b in pairs)


def _is_clear(size: Any) -> bool:
    return statically_known_true(size == 1) or statically_known_true(size != 1)


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


def taken_along(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`torch.take_along_dim` of sizes that are equal, or known to be 1 or not.

    Args:
        input: of any shape and dtype.
        indices: int64, of as many dimensions; or of any, without ``dim``.
        dim: along which elements are taken; None for those of the flat tensor.
    """
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    pairs = zip(input.shape, indices.shape)
    common = [b if statically_known_true(a == 1) else a for a, b in pairs]
    common[dim] = -1
    return input.expand(common).gather(dim, indices.expand(common))
