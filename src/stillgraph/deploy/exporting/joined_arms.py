"""What torch makes of the results of two arms whose sizes differ.

It tells the strides of what a branch gives from those of the arms: which stride is the product of which sizes. That
fails for a size which only the run knows, anywhere but in front: it may be 0, so the stride beside it is ``Max(1, u0)``
and no product. A dense result needs none of that: its sizes are joined one by one, and with the order in which its
dimensions lie in memory they tell its strides.

The adapter to how torch joins the outputs of `torch.cond`.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_contiguous_or_false

from stillgraph.program.attention import inverse

_MOST_DIMENSIONS = 5  # of tensors whose orders are tried
_COND: Any = importlib.import_module("torch._higher_order_ops.cond")  # torch gives the function of this name


@contextlib.contextmanager
def joined_by_sizes() -> Iterator[None]:
    """Let torch join dense results of all sizes. What is exchanged is the process's: for one thread at a time."""
    theirs = _COND._merge_output

    def join(left: Any, right: Any, mode: Any) -> Any:
        order = _order_of(left, right)
        if order is None:
            return theirs(left, right, mode)
        with mode:
            lines = [(left.new_empty(one), right.new_empty(other)) for one, other in zip(left.shape, right.shape)]
            sizes = [theirs(one, other, mode).shape[0] for one, other in lines]
            return left.new_empty([sizes[dim] for dim in order]).permute(inverse(order))

    _COND._merge_output = join
    try:
        yield
    finally:
        _COND._merge_output = theirs


def _order_of(left: Any, right: Any) -> tuple[int, ...] | None:
    """The order in which the dimensions of two dense tensors lie in memory, the farthest apart first, if it is one."""
    tensors = left, right
    if not all(isinstance(each, Tensor) and each.layout is torch.strided for each in tensors):
        return None
    if not 1 < left.dim() == right.dim() <= _MOST_DIMENSIONS:
        return None
    orders = itertools.permutations(range(left.dim()))  # that of contiguous ones comes first
    return next((one for one in orders if all(is_contiguous_or_false(each.permute(one)) for each in tensors)), None)
