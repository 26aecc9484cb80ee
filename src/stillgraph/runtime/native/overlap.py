"""Whether tensors share memory: what is compiled for tensors apart is wrong for others, once it writes in place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)  # other subclasses need not have memory of their own


def overlap(values: Sequence[Any], *, gradients: bool = False) -> bool:
    """Whether a write to one of the tensors among some values may be noticed by another.

    Judged by the stretch of memory from a tensor's first element to its last: the even and the odd columns of a matrix
    count as overlapping.

    Args:
        values: tensors, and what is none.
        gradients: whether autograd is on. Views of one tensor count their versions together, so what it saved of one
            is spoilt by a write to any other.
    """
    tensors = [value for value in values if type(value) in _PLAIN]
    storages = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    if len({*storages}) == len(storages):
        return False
    filled = [(tensor, storage) for tensor, storage in zip(tensors, storages, strict=True) if tensor.numel()]
    if gradients:
        return len({storage for _, storage in filled}) < len(filled)
    stretches = sorted(_stretch(tensor) for tensor, _ in filled)
    return any(start < end for (_, end), (start, _) in itertools.pairwise(stretches))


def _stretch(tensor: torch.Tensor) -> tuple[int, int]:
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (steps + 1) * tensor.element_size()
