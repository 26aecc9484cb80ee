"""Transforms of `torch.func` inside a captured function: the transformed code is followed, its kernels are recorded.

Where a tensor inside decides, no kernels can be recorded. A gradient (``torch.func.grad``) is then taken by
`torch.autograd`, in which the code stands as it is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, FunctionType
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.operators.dispatch import call
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.protected import StageTry
from stillgraph.trace.fakes.kernels import by_kernels
from stillgraph.trace.fakes.symbolic import under_transform
from stillgraph.trace.graph.region import Region

_OF_GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "grad_and_value.<locals>.wrapper": lambda gradient, given: (gradient, given),
    "grad.<locals>.wrapper": lambda gradient, given: (gradient, given[1]) if isinstance(given, tuple) else gradient,
}
"""By what torch calls the functions that transforms make: what they give, of a gradient and the value it is of."""


def call_transform(capture: Session, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a transform (``torch.func.vjp``), or a function that one has made (``torch.vmap(f)``).

    What is transformed, torch's ``func``, is called by way of ours, so that it is rewritten like any other code.
    """
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    giving = _OF_GRADIENTS.get(function.__code__.co_qualname)
    if giving is not None and capture.knowledge.transforms and not under_transform():
        held = {name: closure[name].cell_contents for name in ("func", "argnums", "has_aux")}
        return giving(*_by_autograd(capture, args, kwargs, **held))
    cells = [CellType(_followed(cell.cell_contents)) if name == "func" else cell for name, cell in closure.items()]
    of_ours = function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    following = FunctionType(*of_ours)
    following.__kwdefaults__ = function.__kwdefaults__
    first = function.__code__.co_varnames[:1] == ("func",)
    given = (_followed(args[0]), *args[1:]) if first and args else args
    named = {name: _followed(each) if name == "func" else each for name, each in kwargs.items()} if first else kwargs
    around = [*capture.handlers.attempts]
    try:
        return by_kernels(capture, following, given, named)
    except StageTry as signal:
        if signal.attempt in around:
            raise
        if giving is None or capture.knowledge.transforms:
            message = "what may fail stands in a try inside a transform of torch.func"
            raise refuse("SG304", message, location=here(), hint="Put the try around the transform.") from None
    except (Refusal, CaptureError):
        if giving is None or capture.knowledge.transforms:
            raise
    raise Restart("transforms", None) from None


def _by_autograd(
    capture: Session,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    func: Any,
    argnums: int | tuple[int, ...],
    has_aux: bool,
) -> tuple[Any, Any]:
    """The gradient of a function, and what that gives: of what is differentiated around it, it is a part."""
    several = isinstance(argnums, tuple)
    numbers = tuple(range(len(args))[each] for each in (argnums if isinstance(argnums, tuple) else (argnums,)))
    leaves, tree = tree_flatten([args[number] for number in numbers])
    if not all(isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in leaves):
        raise refuse("SG304", "torch.func.grad by what is no tensor of floating-point numbers", location=here())
    outside = torch.is_grad_enabled()
    with torch._C.DisableTorchFunction():
        tracked = [leaf.requires_grad for leaf in leaves]  # on some path
    with torch.enable_grad():
        fresh = [leaf.view_as(leaf) if each else leaf.detach().requires_grad_() for leaf, each in zip(leaves, tracked)]
        _mark(capture.region, fresh, True)
        given = dict(enumerate(args)) | dict(zip(numbers, tree_unflatten(fresh, tree)))
        found = call(func, *given.values(), **kwargs)
        is_pair = isinstance(found, tuple) and len(found) == 2
        value, aux = found if has_aux and is_pair else (found, None)
        if has_aux != is_pair or not isinstance(value, torch.Tensor) or value.dim():
            raise refuse("SG304", "what torch.func.grad is of gives no tensor without dimensions", location=here())
        with torch._C.DisableTorchFunction():
            around = outside and (any(tracked) or _reaches_others(capture.region, value, fresh))
        parts = [leaf.reshape(-1)[:0].sum() for leaf in fresh]  # for a value that depends on none of them
        gradients = torch.autograd.grad(sum(parts, value), fresh, create_graph=around)
    _mark(capture.region, fresh, False)
    gradient: Any = tree_unflatten(list(gradients), tree)
    result = (value, aux) if has_aux else value
    if not around:
        result = tree_map_only(torch.Tensor, torch.Tensor.detach, result)
    return gradient if several else gradient[0], result


_LEAF = "leaf of a transform"
"""In the metadata of a node: whether the transform goes on of which it is a leaf that requires a gradient."""


def _mark(region: Region, leaves: Sequence[torch.Tensor], goes_on: bool) -> None:
    for leaf in leaves:
        node = region.find(leaf)
        if node is not None:
            node.meta[_LEAF] = goes_on


def _reaches_others(region: Region, value: torch.Tensor, leaves: Sequence[torch.Tensor]) -> bool:
    """Whether a value may depend on a tensor that requires a gradient, other than by some leaves.

    Raises:
        CaptureError: nobody can tell.
    """
    left, seen = [region.find(value)], {region.find(leaf) for leaf in leaves}
    while left:
        node = left.pop()
        if node is None or node in seen or not _needs(node) or node.meta.get(_LEAF) is False:
            continue
        seen.add(node)
        if node.op in ("placeholder", "get_attr") or node.meta.get(_LEAF):
            return True
        given = [each for each in node.all_input_nodes if _needs(each)]
        if not given:
            message = "only the run knows whether a gradient can be differentiated once more"
            raise refuse("SG304", message, location=here(), hint="Use torch.autograd.grad with create_graph=True.")
        left += given
    return False


def _needs(node: fx.Node) -> bool:
    """Whether what a node gives may lead to a tensor that requires a gradient."""
    known = node.meta.get("val")
    return known.requires_grad if isinstance(known, torch.Tensor) else isinstance(known, (tuple, list))


def _followed(value: Any) -> Any:
    """What calls a callable by way of ours; anything else, or a function of torch's in C++, as it is."""
    if not callable(value) or isinstance(value, (type, BuiltinFunctionType, _Followed)):
        return value
    return _Followed(value)


class _Followed:
    """A callable that is followed when torch calls it."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._function, *args, **kwargs)
