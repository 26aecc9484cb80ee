"""The backward pass of a ``torch.autograd.Function`` that a program has followed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable


def rerouted(
    body: Any,
    results: tuple[torch.Tensor, ...],
    saved: tuple[torch.Tensor, ...],
    inputs: tuple[torch.Tensor, ...],
    options: dict[str, Any],
    operands: tuple[Any, ...],
) -> Any:
    """``reroute(body, results, saved, inputs, options)``, where ``body`` is given ``operands`` besides.

    The native lowering makes it a function; nothing runs it as it stands.
    """
    raise NotImplementedError("only the native lowering, which writes this out, can carry it out")


def reroute(
    backward: Callable[..., Any],
    results: tuple[torch.Tensor, ...],
    saved: tuple[torch.Tensor, ...],
    inputs: tuple[torch.Tensor, ...],
    options: dict[str, Any],
) -> tuple[torch.Tensor, ...]:
    """Let gradients go from ``results``, which nothing tracks, to ``inputs`` as ``backward`` says.

    Args:
        backward: gives the gradient of each input, or None. It is given that of each result, and those of ``saved``
            that ``options["own"]`` counts, as autograd keeps them.
        results: what ``forward`` of a `torch.autograd.Function` has given.
        saved: what it has saved for the backward pass, which is not to be written until then.
        inputs: its tensors.
        options: ``"name"``, the function's; ``"own"``; ``"constant"``, the places of results without a gradient; and
            ``"zeros"``, whether ``backward`` gets zeros for a gradient that there is not.
    """
    tracked: tuple[torch.Tensor, ...] = function_named(options["name"]).apply(
        backward, results, saved, options, *inputs
    )
    return tracked


@functools.cache
def function_named(name: str) -> Any:
    """A function whose nodes in autograd's graph, and errors, have the name of the one that was followed."""
    return type(name, (Rerouted,), {})


class Rerouted(torch.autograd.Function):
    """See `reroute`."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.call, results, saved, ctx.options = args[:4]
        ctx.save_for_backward(*saved)
        ctx.set_materialize_grads(ctx.options["zeros"])
        ctx.mark_non_differentiable(*(results[place] for place in ctx.options["constant"]))
        return tuple(results)

    @staticmethod
    @once_differentiable  # a program has the backward pass as it is without ``create_graph``
    def backward(ctx: Any, *grads: Any) -> Any:
        held = ctx.saved_tensors  # which raises where one was written
        given = ctx.call(*grads, *(held[place] for place in ctx.options["own"]))
        return (None, None, None, None, *given)
