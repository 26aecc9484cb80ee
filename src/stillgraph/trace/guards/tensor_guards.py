"""Guards on tensors: their metadata, and whether two arguments could be one tensor."""

from __future__ import annotations

import torch

from stillgraph.program.facts.facts import dense_order
from stillgraph.program.guards import FactGuard, Guard, TensorGuard
from stillgraph.program.sources import Source


def could_be_one(left: torch.Tensor, free: tuple[bool, ...], right: torch.Tensor, free_too: tuple[bool, ...]) -> bool:
    """Whether one tensor could be passed in place of both, as far as the guards on their metadata say."""
    if left.dtype != right.dtype or left.dim() != right.dim():
        return False
    dims = zip(left.shape, right.shape, free, free_too, strict=True)
    return all(size == other or one or another for size, other, one, another in dims)


def tensor_guards(
    value: torch.Tensor, source: Source, symbolic: tuple[bool, ...], any_stride: frozenset[int] = frozenset()
) -> list[Guard]:
    """The metadata a program relies on; where strides follow from symbolic sizes, the order of dimensions in memory."""
    shape = tuple(None if s else d for s, d in zip(symbolic, value.shape))
    dense = value.layout is torch.strided
    order = _order(value) if dense and any(symbolic) else None
    strides = None
    if dense and order is None:
        strides = tuple(None if dim in any_stride else step for dim, step in enumerate(value.stride()))
    kind, dtype, device, lazy = type(value), value.dtype, value.device, (value.is_conj(), value.is_neg())
    guard = TensorGuard(source, kind, dtype, device, shape, strides, value.requires_grad, lazy)
    if not dense or (strides and not any(value.stride())):  # as torch says of what has no strides, or raises
        return [guard, FactGuard(source, "layout", value.layout)]
    return [guard] if order is None else [guard, FactGuard(source, *order)]


def _order(value: torch.Tensor) -> tuple[str, object] | None:
    """The fact that tells a tensor's strides by its sizes, if there is one."""
    if value.is_contiguous():
        return "is_contiguous", True
    order = dense_order(value.shape, value.stride())
    return None if order is None else ("dense_order", order)
