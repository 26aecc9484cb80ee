"""Facts of a tensor that few programs ask for: only those that do are guarded on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_T = torch.Tensor


def fact(name: str, tensor: torch.Tensor) -> Any:
    """One of the facts, read past torch's modes."""
    with torch._C.DisableTorchFunction():
        return FACTS[name](tensor)


# By the name of the method or attribute; what it gives is compared with ``==``.
FACTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "is_contiguous": _T.is_contiguous,
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
