"""Numbers of one kind as 0-d tensors of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stillgraph.passes.regions.values import dtype_of

Emit = Callable[..., Any]  # emit(target, *args, kind=..., **kwargs) -> node
Operand = tuple[type, Any]  # the kind of a number, and its 0-d tensor or the constant itself
Lowering = Callable[[Emit, type, list[Operand]], Any]


def cast(emit: Emit, operand: Operand, kind: type) -> Any:
    """A number as another kind."""
    have, value = operand
    if have is kind:
        return value
    if isinstance(value, (bool, int, float)):
        return kind(value)
    if kind is bool:
        return emit(torch.ne, value, 0, kind=bool)
    return emit("to", value, dtype_of(kind), kind=kind)


def tensor_of(emit: Emit, operand: Operand, kind: type) -> Any:
    """A number as a tensor, a constant too."""
    value = cast(emit, operand, kind)
    return emit(torch.full, (), value, dtype=dtype_of(kind), kind=kind) if isinstance(value, kind) else value
