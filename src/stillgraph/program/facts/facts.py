"""Facts of a tensor that few programs ask for: only those that do are guarded on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_T = torch.Tensor


def fact(name: str, tensor: torch.Tensor) -> Any:
    """One of the facts, read past torch's modes."""
    with torch._C.DisableTorchFunction():
        return FACTS[name](tensor)


def dense_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of a tensor from the outermost in memory to the innermost; None where there are gaps."""
    inner_first = sorted(range(len(shape)), key=lambda dim: (strides[dim], shape[dim]))
    step = 1
    for dim in inner_first:
        if strides[dim] != step:
            return None
        step *= shape[dim]
    return tuple(reversed(inner_first))


# By the name of the method or attribute; what it gives is compared with ``==``.
FACTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "is_contiguous": _T.is_contiguous,
    "dense_order": lambda tensor: dense_order(tensor.shape, tensor.stride()),
    "layout": lambda tensor: tensor.layout,
    "is_leaf": lambda tensor: tensor.is_leaf,
    "grad_fn": lambda tensor: tensor.grad_fn is None,
    "retains_grad": lambda tensor: tensor.retains_grad,
    "_base": lambda tensor: tensor._base is None,
    "_is_view": _T._is_view,
    "_version": lambda tensor: tensor._version,
    "_backward_hooks": lambda tensor: tensor._backward_hooks is None,
    "storage_offset": _T.storage_offset,
    "is_inference": _T.is_inference,
    "is_shared": _T.is_shared,
    "is_pinned": _T.is_pinned,
    "names": lambda tensor: tensor.names,  # type: ignore[attr-defined]  # not in the stubs
}
