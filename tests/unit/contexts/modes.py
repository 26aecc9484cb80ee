"""A static function against its original under torch's modes: values, dtypes, gradients, and the modes afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.context import SWITCHES
from tests.cases.compare import assert_same, tensors_in
from tests.unit.trace.agreement import outcome, same_error, state

Around = Callable[[], contextlib.AbstractContextManager[Any]]


def modes() -> dict[str, Any]:
    """Every mode and setting of torch's that a function could leave changed."""
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": [torch.is_autocast_enabled(device) for device in ("cpu", "cuda")],
        "autocast dtypes": [torch.get_autocast_dtype(device) for device in ("cpu", "cuda")],
        "autocast cache": torch.is_autocast_cache_enabled(),
        "default device": torch.get_default_device(),
        "function modes": torch._C._len_torch_function_stack(),
        **{switch.name: switch.read() for switch in SWITCHES},
    }


def agree_in(make: Callable[[], Any], *calls: Any, around: Around | tuple[Around, ...] = contextlib.nullcontext) -> Any:
    """Assert that a static function does what the function does, in some modes.

    Args:
        make: makes a fresh function or module.
        calls: the arguments of each call: one, or a tuple.
        around: makes what each call stands in; several, one for each call.

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
        scope = around[number] if isinstance(around, tuple) else around
        expected, actual = _seen(eager, args, scope), _seen(static, args, scope)
        if isinstance(actual["error"], sg.CaptureError):
            raise actual["error"]
        assert same_error(expected.pop("error"), actual.pop("error")), f"call {number}"
        for what, value in expected.items():
            assert_same(value, actual[what], f"call {number}: {what}")
        assert_same(state(eager), state(target), f"call {number}: state")
    return static


def _seen(function: Callable[..., Any], args: tuple[Any, ...], around: Around) -> dict[str, Any]:
    parameters = list(function.parameters()) if isinstance(function, nn.Module) else []
    for parameter in parameters:
        parameter.grad = None
    before = modes()
    inside: dict[str, Any] = {}

    def called(*given: Any) -> Any:
        try:
            with around():
                try:
                    return function(*given)
                finally:
                    inside.update(modes())
        finally:
            inside["afterwards"] = modes() == before

    seen = outcome(called, args)
    details = [(t.is_inference(), t.is_leaf, t.grad_fn is None) for t in tensors_in(seen["value"])]
    gradients = [parameter.grad for parameter in parameters]
    return {**seen, "modes": inside, "kinds of tensors": details, "gradients of parameters": gradients}


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """As a user would write it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def square(values: float = 0.1, grad: bool = False) -> Tensor:
    """A 3×3 matrix, all of whose elements have the sign of ``values``."""
    return ((torch.arange(9.0).reshape(3, 3) + 1) * values).requires_grad_(grad)


UP, DOWN = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0])
UP_GRAD, DOWN_GRAD = UP.clone().requires_grad_(), DOWN.clone().requires_grad_()
VECTORS = (UP, DOWN, UP_GRAD, DOWN_GRAD)
MATRICES = (square(), square(-0.1), square(grad=True), square(-0.1, grad=True))
WEIGHT = torch.tensor([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.25, 1.0, 2.0]])
TRAINED = WEIGHT.clone().requires_grad_()
