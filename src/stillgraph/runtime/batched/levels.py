"""One operation for all lanes of a group, by torch's own batching rules.

The one module that knows the levels of `torch.func`, for which there is no public way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torch._C._functorch as functorch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from stillgraph.runtime.batched.values import Batch, mapped


def at_level(
    function: Callable[..., Any], args: Any, kwargs: Any, lanes: int, randomness: str = "error"
) -> Any:
    """What a function of torch's gives for all lanes of a group.

    Args:
        function: an operation.
        args, kwargs: of it; each `Batch` in them stands for one tensor of each lane.
        lanes: how many there are.
        randomness: as of `torch.vmap`.

    Returns:
        The result; a tensor in it that differs among the lanes is a `Batch`.
    """
    level = functorch._vmap_increment_nesting(lanes, randomness)
    try:

        def given(leaf: Any) -> Any:
            return functorch._add_batch_dim(leaf.tensor, 0, level) if type(leaf) is Batch else leaf

        def taken(leaf: Any) -> Any:
            if is_wrapped(leaf) and functorch.is_batchedtensor(leaf) and functorch.maybe_get_level(leaf) == level:
                return Batch(functorch._remove_batch_dim(leaf, level, lanes, 0))
            return leaf

        return mapped(taken, function(*mapped(given, args), **mapped(given, kwargs)))
    finally:
        functorch._vmap_decrement_nesting()


# ---- the transforms that are at work
@dataclass(frozen=True)
class Level:
    """A `torch.vmap` that is at work: how many lanes it has, and a tensor that differs among these and nothing else."""

    number: int
    lanes: int
    token: Tensor


def vmap_levels() -> list[Level]:
    """Each `torch.vmap` that is at work in this thread, the outermost first."""
    found = []
    for each in functorch.get_interpreter_stack() or ():
        if each.key() == functorch.TransformType.Vmap:
            lanes = functorch.CVmapInterpreterPtr(each).batchSize()
            with without_transforms():  # which would wrap it, too
                zeros = torch.zeros(lanes)
            found.append(Level(each.level(), lanes, functorch._add_batch_dim(zeros, 0, each.level())))
    return found


def is_wrapped(value: Any) -> bool:
    """Whether a value is a tensor of a transform."""
    return isinstance(value, Tensor) and functorch.is_functorch_wrapped_tensor(value)


def differs_in(tensor: Tensor, levels: Sequence[Level]) -> bool:
    """Whether a tensor differs among the lanes of some of the levels."""
    numbers = {each.number for each in levels}
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor) and functorch.maybe_get_level(tensor) in numbers:
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def is_within(tensor: Tensor, level: Level) -> bool:
    """Whether a tensor differs among the lanes of a level, or is one of a transform inside of that.

    What that transform gives for it, a gradient say, differs among the lanes, be the tensor the same for all.
    """
    return is_wrapped(tensor) and bool(functorch.maybe_get_level(tensor) >= level.number)


def without_transforms() -> AbstractContextManager[Any]:
    """A block in which no transform is at work."""
    return temporarily_clear_interpreter_stack()


class _WithToken(torch.autograd.Function):
    """What is done by a level: it takes a tensor, and the token of the level, which the way back needs as well."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, token = inputs
        ctx.save_for_backward(token)
        ctx.save_for_forward(token)


class _Out(_WithToken):
    """A tensor of the lanes of one level as one tensor with the lanes in its first dimension, for all other levels."""

    @staticmethod
    def forward(tensor: Tensor, token: Tensor) -> Tensor:
        return tensor.expand(token.shape[0], *tensor.shape).clone()  # of a level that is gone

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], tensor: Tensor, token: Tensor) -> tuple[Tensor, int | None]:
        at, of_level = in_dims
        if of_level is None:  # another level's: it goes on behind the lanes of this one
            assert at is not None
            return _out(tensor.movedim(at, 0), token), 1
        spread = tensor.expand(info.batch_size, *tensor.shape) if at is None else tensor.movedim(at, 0)
        return spread.clone(), None

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (token,) = ctx.saved_tensors
        return _in(grad, token), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
        (token,) = ctx.saved_tensors
        return _out(tangent, token)


class _In(_WithToken):
    """The way back: a tensor with the lanes in its first dimension as one tensor of each lane of a level."""

    @staticmethod
    def forward(tensor: Tensor, token: Tensor) -> Tensor:
        return tensor.sum(0)  # of a level that is gone

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], tensor: Tensor, token: Tensor) -> tuple[Tensor, int]:
        at, of_level = in_dims
        if of_level is None:
            assert at is not None
            return _in(tensor.movedim(at, 1), token), 0
        if at is not None:  # it differs among the lanes already: each takes its own row
            return tensor.movedim(at, 0).diagonal(0, 0, 1).movedim(-1, 0).clone(), 0
        return tensor.clone(), 0

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (token,) = ctx.saved_tensors
        return _out(grad, token), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
        (token,) = ctx.saved_tensors
        return _in(tangent, token)


def _out(tensor: Tensor, token: Tensor) -> Tensor:
    applied: Tensor = _Out.apply(tensor, token)  # type: ignore[no-untyped-call]  # torch's has no types
    return applied


def _in(tensor: Tensor, token: Tensor) -> Tensor:
    applied: Tensor = _In.apply(tensor, token)  # type: ignore[no-untyped-call]  # torch's has no types
    return applied


def out_of(tensor: Tensor, levels: Sequence[Level]) -> Tensor:
    """A tensor that differs in some of the levels, with all their lanes in its first dimension and in none of them."""
    for level in reversed(levels):
        tensor = _out(tensor, level.token)
    return tensor.flatten(0, len(levels) - 1)


def into(tensor: Tensor, levels: Sequence[Level]) -> Tensor:
    """The way back of `out_of`."""
    tensor = tensor.unflatten(0, [each.lanes for each in levels])
    for level in levels:
        tensor = _in(tensor, level.token)
    return tensor
