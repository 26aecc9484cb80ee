"""A static function and its original: the same derivatives of every order, where eager has them and only there."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same, tensors_in


def d(*values: float, grad: bool = True) -> Tensor:
    """A vector in float64 that requires a gradient."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def s(value: float, grad: bool = True) -> Tensor:
    """A 0-d tensor in float64 that requires a gradient."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=grad)


@dataclass(frozen=True)
class Graph:
    """What autograd's graph says of an output."""

    requires_grad: bool
    is_leaf: bool
    has_function: bool
    retains_grad: bool
    argument: list[int]  # which of the call's tensors it is
    base: list[int]  # which of them it is a view of


def differentiate(make: Callable[[], Any], *calls: Any, order: int = 2, programs: int = 1) -> Any:
    """Assert that a static function's derivatives are eager's, call after call.

    Args:
        make: makes a fresh function or module.
        calls: what to call it with: a tensor, or a tuple of arguments.
        order: how often to differentiate.
        programs: how many programs the calls may need.

    Returns:
        The static function.
    """
    torch.manual_seed(0)
    eager = make()
    torch.manual_seed(0)
    target = make()
    static = sg.to_static(target, backend="eager")
    for number, given in enumerate(calls):
        args = given if isinstance(given, tuple) else (given,)
        for accumulate in (False, True):
            expected = derivatives(eager, eager, args, order, accumulate)
            actual = derivatives(static, target, args, order, accumulate)
            for what, value in expected.items():
                assert_same(value, actual[what], f"call {number}: {what}")
    held = static.forward if isinstance(static, nn.Module) else static
    assert held.cache_info().programs <= programs, held.cache_info()
    return static


def derivatives(
    function: Callable[..., Any],
    owner: Any,
    args: tuple[Any, ...],
    order: int,
    accumulate: bool,
    curved: bool = False,
) -> dict[str, Any]:
    """All that differentiating a call gives.

    Args:
        function: to be called.
        owner: the module or function whose parameters count.
        args: of the call; they are copied.
        order: how often to differentiate.
        accumulate: by ``backward()`` into ``.grad``, not by `torch.autograd.grad`.
        curved: differentiate a square of what the call gives: what is linear has second derivatives too, then.
    """
    args = copy.deepcopy(args)
    torch.manual_seed(1)
    parameters = dict(owner.named_parameters()) if isinstance(owner, nn.Module) else {}
    given = tensors_in(args)
    leaves = [t for t in [*given, *parameters.values()] if t.requires_grad and t.is_leaf]
    found: dict[str, Any] = {"error": None}
    try:
        value = function(*args)
    except sg.CaptureError:
        raise
    except Exception as error:
        return {"error": repr(error)}
    outputs = tensors_in(value)
    found["value"] = value
    found["graph"] = [graph_of(output, given) for output in outputs]
    found["arguments"] = args
    current = [output for output in outputs if output.requires_grad]
    try:
        for turn in range(1, order + 1):
            if not current or not leaves:
                break
            weights = [weight(tensor) * (tensor if curved and turn == 1 else 1) for tensor in current]
            if accumulate and turn == 1:
                torch.autograd.backward(current, weights)
                found["accumulated"] = [leaf.grad for leaf in leaves]
                break
            gradients = torch.autograd.grad(current, leaves, weights, create_graph=turn < order, allow_unused=True)
            found[f"derivatives of order {turn}"] = gradients
            current = [g for g in gradients if g is not None and g.requires_grad]
    except RuntimeError as error:
        found["error"] = repr(error)
    for parameter in parameters.values():
        parameter.grad = None
    return found


def graph_of(output: Tensor, given: list[Tensor]) -> Graph:
    """What autograd's graph says of an output, given the tensors of the call."""
    return Graph(
        output.requires_grad,
        output.is_leaf,
        output.grad_fn is not None,
        output.retains_grad,
        [i for i, tensor in enumerate(given) if tensor is output],
        [i for i, tensor in enumerate(given) if output._base is not None and tensor is output._base],
    )


def weight(tensor: Tensor) -> Tensor:
    """A gradient to send back that differs from element to element: a plain sum hides errors."""
    count = torch.arange(1, tensor.numel() + 1, dtype=torch.float64)
    return (count * 0.7).cos().reshape(tensor.shape).to(tensor.dtype)
