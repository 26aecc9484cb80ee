"""`torch.autograd.Function`: what its methods are called with."""

from __future__ import annotations

from typing import Any

import torch


class Context:
    """What ``forward`` and ``backward`` are given as ``ctx``.

    Args:
        needs_input_grad: for each argument, whether a gradient of it is wanted.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: Any = ()
        self.non_differentiable: Any = ()
        self.dirty_tensors: Any = ()
        self.materialize_grads: Any = True

    def save_for_backward(self, *tensors: Any) -> None:
        """As torch's."""
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """As torch's: nothing, without forward-mode derivatives."""

    def mark_dirty(self, *args: Any) -> None:
        """As torch's."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """As torch's."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: Any) -> None:
        """As torch's."""
        self.materialize_grads = value


def forward(function: Any, ctx: Context, args: Any) -> Any:
    """What ``function.apply(*args)`` gives, besides gradients."""
    with torch.no_grad():
        if function.setup_context is torch.autograd.Function.setup_context:
            return function.forward(ctx, *args)
        result = function.forward(*args)
        function.setup_context(ctx, args, result)
        return result


def backward(function: Any, ctx: Context, grads: Any) -> Any:
    """The gradients of the arguments."""
    own = function.vjp if function.backward is torch.autograd.Function.backward else function.backward
    given = own(ctx, *grads)
    return given if isinstance(given, tuple) else (given,)
