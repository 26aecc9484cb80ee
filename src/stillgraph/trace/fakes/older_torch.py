"""What torch before 2.13 asks of sizes and numbers, though the result is like itself whatever they are.

torch 2.13 asks none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stillgraph.trace.fakes.symbolic import kernels_in_python

_T = torch.Tensor


def _power(base: Any, exponent: Any, **kwargs: Any) -> Any:
    """A power with a number, of which torch asks whether it is 1: on fakes it is like a sum."""
    tensor, number = (base, exponent) if isinstance(base, torch.Tensor) else (exponent, base)
    return torch.add(tensor, number, **kwargs)


def _power_in_place(base: torch.Tensor, exponent: Any) -> torch.Tensor:
    return base.add_(exponent)


def _copied(tensor: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """A copy, of which torch asks whether the two have one size: what is added has to be of one as well."""
    return tensor.add_(src.to(tensor))


def _assigned(tensor: torch.Tensor, index: Any, value: Any) -> None:
    part = tensor[index]
    if part._is_view() and isinstance(value, torch.Tensor) and value.dim() <= part.dim():
        _copied(part, value)
    else:
        tensor[index] = value  # asks again


def _broadcast(*tensors: torch.Tensor) -> Any:
    with kernels_in_python():
        return torch.broadcast_tensors(*tensors)


def _norm(input: torch.Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> torch.Tensor:
    """A norm, of which torch 2.11 asks whether it is one of a single number."""
    return torch.sum(input.abs(), dim, keepdim, dtype=dtype)


def _vector_norm(x: torch.Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> torch.Tensor:
    return _norm(x, ord, dim, keepdim, **kwargs)


def _quantile(
    input: torch.Tensor, q: Any, dim: int | None = None, keepdim: bool = False, **kwargs: Any
) -> torch.Tensor:
    """A quantile, of which torch 2.11 asks whether it is one: a number between 0 and 1."""
    if isinstance(q, torch.Tensor):
        return torch.quantile(input, q, dim, keepdim, **kwargs)  # asks again
    return torch.sum(input, dim, keepdim)


WITHOUT_ASKING: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((torch.pow, _T.pow, _T.__pow__, _T.__rpow__), _power),
    **dict.fromkeys((_T.pow_, _T.__ipow__), _power_in_place),
    _T.copy_: _copied,
    _T.__setitem__: _assigned,
    torch.broadcast_tensors: _broadcast,
    **dict.fromkeys((torch.norm, _T.norm), _norm),
    torch.linalg.vector_norm: _vector_norm,
    **dict.fromkeys((torch.quantile, _T.quantile, torch.nanquantile, _T.nanquantile), _quantile),
}
"""By torch's function one that does the same to fakes."""
