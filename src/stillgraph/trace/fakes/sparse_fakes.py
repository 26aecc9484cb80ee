"""Fake sparse tensors: how many elements one holds, only the run knows. torch says of each that it holds none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_ATEN = torch.ops.aten
COUNTS = _ATEN._nnz.default
"""The operator that gives how many there are."""


def _of_indices(tensor: torch.Tensor) -> int:
    """The dimension in which indices of a sparse tensor are counted."""
    return 1 if tensor.layout is torch.sparse_coo else _batch_dims(tensor)


def _of_values(tensor: torch.Tensor) -> int:
    """The dimension in which values of a sparse tensor are counted."""
    return 0 if tensor.layout is torch.sparse_coo else _batch_dims(tensor)


def _batch_dims(tensor: torch.Tensor) -> int:
    by_row = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    return (tensor.crow_indices() if by_row else tensor.ccol_indices()).dim() - 1


def _overloads(names: str, dim: Callable[[torch.Tensor], int]) -> dict[Any, Callable[[torch.Tensor], int]]:
    packets = (getattr(_ATEN, name + ending, None) for name in names.split() for ending in ("", "_copy"))
    return {packet.default: dim for packet in packets if packet is not None}


_COUNTED = {
    **_overloads("indices _indices col_indices row_indices", _of_indices),
    **_overloads("values _values", _of_values),
}


def as_counted(mode: Any, func: Any, args: Any, result: Any) -> Any:
    """What an operator of torch's gives for fakes: parts of a sparse tensor have as many elements as the run says.

    Args:
        mode: that of the fakes.
        func, args: the operator.
        result: what torch says that it gives.
    """
    counted = _COUNTED.get(func)
    if counted is None or not isinstance(result, torch.Tensor):
        return result
    shape: list[Any] = list(result.shape)
    shape[counted(args[0])] = mode.shape_env.create_unbacked_symint()
    torch._check(shape[counted(args[0])] >= 0)
    with mode:
        return torch.empty(shape, dtype=result.dtype, device=result.device)
