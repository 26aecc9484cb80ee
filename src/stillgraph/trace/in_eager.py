"""What eager PyTorch says of an operation that fails on fake tensors: their words are often others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.trace.symbolic import is_fake

_MOST = 1 << 16  # elements of an argument


@dataclass(frozen=True, eq=False)
class Failed:
    """An operation that has raised on fake tensors. The error itself would hold the frames of the capture."""

    error: int
    function: Callable[..., Any]
    args: Any
    kwargs: Any


def in_eager(error: BaseException, failed: Failed | None) -> BaseException:
    """What an operation raises on real tensors of its arguments' shapes.

    Args:
        error: what is to be told of.
        failed: the last operation that has failed.

    Returns:
        The error itself, where it is not that operation's, or the operation cannot be tried.
    """
    if failed is None or failed.error != id(error):
        return error
    try:
        with torch._C.DisableTorchFunction(), torch.random.fork_rng(devices=[]), torch.no_grad():
            given, options = torch.utils._pytree.tree_map(_real, (failed.args, failed.kwargs))
            failed.function(*given, **options)
    except _Unknown:
        return error
    except Exception as said:  # of any kind: it is what is asked for
        return said if type(said) is type(error) else error
    return error


class _Unknown(Exception):
    """A value for which there is no real one, or too large a one."""


def _real(value: Any) -> Any:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise _Unknown
    if not isinstance(value, torch.Tensor):
        return value
    sizes = tuple(value.shape)
    if not is_fake(value) or value.device.type != "cpu" or value.layout is not torch.strided:
        raise _Unknown
    if not all(type(size) is int for size in sizes) or value.numel() > _MOST:
        raise _Unknown
    return torch.zeros(sizes, dtype=value.dtype)
