"""Guards on tensors: their metadata, and whether two arguments could be one tensor."""

from __future__ import annotations

import torch

from stillgraph.program.guards import FactGuard, Guard, TensorGuard
from stillgraph.program.sources import Source


def could_be_one(left: torch.Tensor, free: tuple[bool, ...], right: torch.Tensor, free_too: tuple[bool, ...]) -> bool:
    """Whether one tensor could be passed in place of both, as far as the guards on their metadata say."""
    if left.dtype != right.dtype or left.dim() != right.dim():
        return False
    dims = zip(left.shape, right.shape, free, free_too, strict=True)
    return all(size == other or one or another for size, other, one, another in dims)


def tensor_guards(value: torch.Tensor, source: Source, symbolic: tuple[bool, ...]) -> list[Guard]:
    """The metadata a program relies on; where the sizes are symbolic and the layout is the plain one, that it is."""
    shape = tuple(None if s else d for s, d in zip(symbolic, value.shape))
    dense = value.layout is torch.strided
    plain = dense and any(symbolic) and value.is_contiguous()
    strides = tuple(value.stride()) if dense and not plain else None
    kind, dtype, device, lazy = type(value), value.dtype, value.device, (value.is_conj(), value.is_neg())
    guard = TensorGuard(source, kind, dtype, device, shape, strides, value.requires_grad, lazy)
    if not dense or (strides and not any(strides)):  # as torch says of what has no strides, or raises
        return [guard, FactGuard(source, "layout", value.layout)]
    return [guard, FactGuard(source, "is_contiguous", True)] if plain else [guard]
