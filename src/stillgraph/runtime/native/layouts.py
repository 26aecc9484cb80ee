"""How tensors lie in memory, as far as callers may rely on it: their strides, and which of them share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)  # other kinds need not have memory of their own


def stride_difference(one: torch.Tensor, other: torch.Tensor) -> str | None:
    """In what the strides of a tensor differ from those that eager PyTorch's has; None where they do not.

    Only of dense tensors, and of dimensions longer than one: of others, the strides are nobody's promise.
    """
    if not (_has_memory(one) and _has_memory(other)) or not _is_dense(other):
        return None
    long = [i for i, size in enumerate(other.shape) if size > 1]
    if len(long) < 2 or [one.stride(i) for i in long] == [other.stride(i) for i in long]:
        return None
    return f"has the strides {one.stride()}, in eager {other.stride()}"


def sharing_difference(program: Sequence[tuple[str, Any]], eager: Sequence[tuple[str, Any]]) -> str | None:
    """The first of some tensors, by name, that shares its memory with another in one of two worlds only."""
    common = {name for name, _ in program} & {name for name, _ in eager}
    mine, theirs = _tensors(program, common), _tensors(eager, common)
    for of, what in ((_memory, "memory"), (id, "an object")):
        first, others = _first_with(mine, of), _first_with(theirs, of)
        for name in (each for each in first if each in others):
            one, other = first[name], others[name]
            if one != other and other != name:
                return f"{name} does not share {what} with {other}, as it does in eager"
            if one != other:
                return f"{name} shares {what} with {one}, unlike in eager"
    return None


def _tensors(named: Iterable[tuple[str, Any]], common: set[str]) -> dict[str, torch.Tensor]:
    return {n: each for n, each in named if n in common and _has_memory(each) and each.numel()}


def _first_with(tensors: dict[str, torch.Tensor], of: Callable[[torch.Tensor], int]) -> dict[str, str]:
    first: dict[int, str] = {}
    return {name: first.setdefault(of(tensor), name) for name, tensor in tensors.items()}


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _has_memory(value: Any) -> bool:
    return type(value) in _PLAIN and value.layout is torch.strided and not value.is_nested and not value.is_meta


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether a tensor fills its part of memory, each element once."""
    expected = 1
    for stride, size in sorted((tensor.stride(i), size) for i, size in enumerate(tensor.shape) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return tensor.numel() > 0
