"""`vmap`: a function called for many lanes at once, each of which takes its own way through branches and loops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from stillgraph.api import later
from stillgraph.api.capturing import to_static
from stillgraph.core.diagnostics import refuse
from stillgraph.runtime.batched.calling import Callee, Given, call_for_lanes
from stillgraph.runtime.batched.levels import is_wrapped
from stillgraph.runtime.batched.values import Batch
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.trace.code.frames import here

_RANDOMNESS = ("error", "different", "same")


def vmap(
    function: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error"
) -> Callable[..., Any]:
    """Call a function for many lanes at once, as `torch.vmap` does, with branches and loops on what the lanes hold.

    Each lane takes its own arm of a branch and as many iterations of a loop as it needs. Nothing that can fail, or that
    gradients go through, is computed for a lane that a call for that lane alone would not compute. Gradients are those
    of a loop over the lanes.

    Args:
        function: a static function or method, or any other that `to_static` takes; what it calls with it is captured
            for one lane, and run for all of them.
        in_dims: which dimension of the arguments has the lanes: a number for all tensors, or a tree like the positional
            arguments, with None for what all lanes share. Tensors among the keyword arguments have them in dimension 0.
            What is no tensor is shared.
        out_dims: which dimension of the results is to have them: a number, or a tree like the result.
        randomness: what drawing at random does: ``"error"``, ``"different"`` for each lane, ``"same"`` for all.

    Returns:
        A function that takes what ``function`` takes, with one dimension more, and returns what it returns, with one
        dimension more. A number that it returns becomes a tensor: of ``bool``, ``int64`` or ``float64``.

    Raises:
        TypeError: ``function`` cannot be called.
        ValueError: ``randomness`` is something else, or the arguments do not agree on how many lanes there are.
        CaptureError: in a call: it cannot become one program, has effects (SG311), the results of the lanes cannot be
            stacked (SG312), or the call stands in a function that is captured (SG304).
    """
    if randomness not in _RANDOMNESS:
        raise ValueError(f"randomness is {randomness!r}, but can only be one of {', '.join(_RANDOMNESS)}")
    callee, receiver = _callee(function)

    @functools.wraps(function, updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        if later.current() is not None:
            hint = "Call sg.vmap of a static function outside of static functions."
            raise refuse("SG304", "sg.vmap is used inside a function that is captured", location=here(), hint=hint)
        batched_args, batched_kwargs, lanes = _with_lanes(args, kwargs, in_dims)
        given = Given((*receiver, *batched_args), batched_kwargs, is_wrapped)
        result = call_for_lanes(callee, given, lanes, randomness)
        return _with_dims(result, out_dims, lanes)

    return batched


def _callee(function: Any) -> tuple[Callee, tuple[Any, ...]]:
    """The function to call, and the receiver of a method."""
    receiver: tuple[Any, ...] = ()
    if isinstance(function, BoundStaticFunction):
        function, receiver = function.__func__, (function.__self__,)
    if not isinstance(function, StaticFunction):
        if not callable(function):
            raise TypeError(f"{function!r} is not callable")
        called = function
        function = to_static(_calling(called) if isinstance(called, torch.nn.Module) else called, backend="eager")
    return Callee(function.__name__, function.captured, function), receiver


def _calling(module: torch.nn.Module) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    return call


def _with_lanes(args: tuple[Any, ...], kwargs: dict[str, Any], in_dims: Any) -> tuple[Any, dict[str, Any], int]:
    """The arguments with a `Batch` for each tensor that differs, and how many lanes there are."""
    leaves, spec = pytree.tree_flatten(args)
    dims = [in_dims] * len(leaves) if isinstance(in_dims, int) else _broadcast(in_dims, args, "in_dims")
    strict = not isinstance(in_dims, int)
    named, named_spec = pytree.tree_flatten(kwargs)
    given = [*zip(leaves, dims), *((each, 0 if isinstance(each, Tensor) else None) for each in named)]
    found: list[Any] = []
    sizes: set[int] = set()
    for leaf, dim in given:
        if not isinstance(leaf, Tensor) and dim is not None:
            if strict:
                raise ValueError(f"in_dims gives dimension {dim} to a {type(leaf).__name__}, which has none")
            dim = None
        if dim is None:
            found.append(leaf)
            continue
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(f"in_dims gives dimension {dim} to a tensor of {leaf.dim()} dimensions")
        sizes.add(leaf.shape[dim])
        found.append(Batch(leaf.movedim(dim, 0)))
    if len(sizes) != 1:
        what = "no argument has lanes" if not sizes else f"the arguments have {sorted(sizes)} lanes"
        raise ValueError(f"vmap needs one number of lanes, but {what}")
    (lanes,) = sizes
    if lanes == 0:
        raise ValueError("vmap needs at least one lane")
    positional = pytree.tree_unflatten(found[: len(leaves)], spec)
    return positional, pytree.tree_unflatten(found[len(leaves) :], named_spec), lanes


def _with_dims(result: Any, out_dims: Any, lanes: int) -> Any:
    """A result with the lanes where they are wanted."""
    if out_dims == 0:
        return result
    leaves, spec = pytree.tree_flatten(result)
    dims = [out_dims] * len(leaves) if isinstance(out_dims, int) else _broadcast(out_dims, result, "out_dims")
    moved = [_moved(leaf, dim) for leaf, dim in zip(leaves, dims)]
    return pytree.tree_unflatten(moved, spec)


def _moved(leaf: Any, dim: int | None) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    if dim is None:
        raise ValueError("out_dims is None for a tensor: each lane has one")
    return leaf.movedim(0, dim)


def _broadcast(dims: Any, tree: Any, name: str) -> list[int | None]:
    """A dimension for each leaf of a tree, of those that are given for it, or for parts of it."""

    def below(dims: Any, tree: Any) -> list[int | None]:
        leaves = pytree.tree_leaves(tree)
        if dims is None or isinstance(dims, int):
            return [dims] * len(leaves)
        if isinstance(tree, dict) and isinstance(dims, dict) and set(tree) == set(dims):
            return [dim for key in tree for dim in below(dims[key], tree[key])]
        if isinstance(tree, (tuple, list)) and isinstance(dims, (tuple, list)) and len(tree) == len(dims):
            return [dim for inner, part in zip(dims, tree) for dim in below(inner, part)]
        raise ValueError(f"{name} has another structure: {dims}")

    return below(dims, tree)
