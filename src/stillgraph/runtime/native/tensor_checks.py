"""Checks of tensors' metadata: torch's own, which is fast, and the same facts read through Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from stillgraph.program.facts.facts import dense_order
from stillgraph.program.guards import TensorGuard


def native_tensor_check(
    tensors: Sequence[Any], sizes: list[list[int | None]], strides: list[list[int | None]]
) -> Callable[..., bool] | None:
    """torch's own check of tensors' metadata (no public one exists).

    Args:
        tensors: examples, as they have to be; they are not kept alive.
        sizes: for each, its sizes, None where any will do.
        strides: the same of its strides.

    Returns:
        A function of as many values, true only where type, dtype, device, dispatch keys, ``requires_grad``, sizes and
        strides are those of the examples, and no tensor comes twice; None where torch cannot build one that accepts the
        examples themselves.
    """
    try:
        from torch._C._dynamo.guards import TensorGuards

        # The declared types of these two are wrong.
        native: Callable[..., bool] = TensorGuards(
            *tensors, dynamic_dims_sizes=cast(Any, sizes), dynamic_dims_strides=cast(Any, strides)
        ).check
        return native if native(*tensors) else None
    except (ImportError, RuntimeError, TypeError):
        return None


def tensor_holds(guard: TensorGuard, value: Any) -> bool:
    """Whether a guard holds of a value, read through Python."""
    return (
        _is_of_kind(guard, value)
        and all(known is None or known == size for known, size in zip(guard.shape, value.shape, strict=True))
        and (guard.strides is None or _agree(guard.strides, value.stride()))
    )


def _is_of_kind(guard: TensorGuard, value: Any) -> bool:
    """Whether a guard holds of a value but for sizes and strides."""
    kind: type = type(value)
    return (
        kind is guard.type
        and value.dtype is guard.dtype
        and value.device == guard.device
        and value.requires_grad is guard.requires_grad
        and len(value.shape) == len(guard.shape)
        and (value.is_conj(), value.is_neg()) == guard.lazy
    )


def _agree(known: Sequence[int | None], found: Sequence[int]) -> bool:
    return all(step is None or step == other for step, other in zip(known, found, strict=True))


def differing_sizes(guard: TensorGuard, value: Any) -> list[int]:
    """The dimensions of which the size is another one than a guard says, if that is all that is to be said."""
    if not _is_of_kind(guard, value) or not _is_laid_out_alike(guard, value):
        return []
    return [dim for dim, (was, now) in enumerate(zip(guard.shape, value.shape)) if was is not None and was != now]


def differing_strides(guard: TensorGuard, value: Any) -> list[int]:
    """The dimensions of which the stride is another one than a guard says, where it does not follow from sizes."""
    if not _is_of_kind(guard, value) or guard.strides is None or not _is_laid_out_alike(guard, value):
        return []
    return [dim for dim, step in enumerate(guard.strides) if step is not None and step != value.stride(dim)]


def _is_laid_out_alike(guard: TensorGuard, value: torch.Tensor) -> bool:
    """Whether a tensor has its elements in the order of a guard's, or there are gaps between those."""
    if value.layout is not torch.strided or guard.strides is None:
        return value.layout is torch.strided  # a guard of its own is on how it lies in memory
    if None in guard.strides or None in guard.shape:
        return True
    was = dense_order(guard.shape, guard.strides)  # type: ignore[arg-type]  # all are numbers
    now = dense_order(value.shape, value.stride())
    return was is None or now is None or was == now


def never(*_: Any) -> bool:
    """A check that nothing passes."""
    return False


class TensorCheck:
    """Checks the metadata of several tensors at once.

    ``native`` is torch's own check, several times faster than reading the same facts through Python. It also compares
    facts that no guard mentions (dispatch keys, which depend on thread-wide modes), so it is built from tensors that
    the guards accepted, is believed only when it says yes, and is built anew where it refused what they accept.
    """

    __slots__ = ("_usable", "guards", "native")

    def __init__(self, guards: Sequence[TensorGuard]) -> None:
        self.guards = guards
        self.native: Callable[..., bool] = never
        self._usable = True

    def accepts(self, *tensors: Any) -> bool:
        """Whether every guard holds of its tensor, read through Python."""
        if not all(map(tensor_holds, self.guards, tensors)):
            return False
        if self._usable:
            sizes = [list(guard.shape) for guard in self.guards]
            strides = [list(guard.strides or [None] * len(guard.shape)) for guard in self.guards]
            native = native_tensor_check(tensors, sizes, strides)
            self._usable = native is not None  # one tensor at two sources is refused however often it is built
            self.native = native or never
        return True
