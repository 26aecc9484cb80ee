"""What torch makes of the results of two arms whose sizes differ.

It tells the strides of what a branch gives from those of the arms: which stride is the product of which sizes. That
fails for a size which only the run knows, anywhere but in front: it may be 0, so the stride beside it is ``Max(1, u0)``
and no product. A contiguous result needs none of that. Its sizes are joined one by one, and they tell its strides.

The adapter to how torch joins the outputs of `torch.cond`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_contiguous_or_false

_COND: Any = importlib.import_module("torch._higher_order_ops.cond")  # torch gives the function of this name


@contextlib.contextmanager
def joined_by_sizes() -> Iterator[None]:
    """Let torch join contiguous results of all sizes. What is exchanged is the process's: for one thread at a time."""
    theirs = _COND._merge_output

    def join(left: Any, right: Any, mode: Any) -> Any:
        if not (_is_contiguous(left) and _is_contiguous(right) and left.dim() == right.dim() > 1):
            return theirs(left, right, mode)
        with mode:
            lines = [(left.new_empty(one), right.new_empty(other)) for one, other in zip(left.shape, right.shape)]
            sizes = [theirs(one, other, mode).shape[0] for one, other in lines]
            return left.new_empty(sizes)

    _COND._merge_output = join
    try:
        yield
    finally:
        _COND._merge_output = theirs


def _is_contiguous(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is torch.strided and is_contiguous_or_false(value)
