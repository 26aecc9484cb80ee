"""``torch.autograd.Function``: called as a whole, or followed where that would not give what eager PyTorch gives.

A function that is called as a whole is one operation, and Python's own ``forward`` and ``backward`` run in it. It
cannot be handed what the call makes, and its ``forward`` cannot decide by what only the run knows. Then ``forward`` is
followed as the user's code is, and ``backward`` becomes a region that autograd calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, cast

import torch

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.polyfills import functions
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.autograd_regions import Forward, stage_backward
from stillgraph.trace.torch_rules.autograd_graph import requirement_differs


def apply_function(capture: Session, apply: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function.apply(*args, **kwargs)``."""
    try:
        return capture.record(apply, args, kwargs)
    except (CaptureError, Refusal) as refusal:
        if not isinstance(apply.__self__.forward, FunctionType):
            raise
        if kwargs:
            raise _refused(apply.__self__, "is given arguments by name", "Pass them by position.") from refusal
        try:
            return _follow(capture, apply.__self__, args)
        except (CaptureError, Refusal) as error:
            raise error from refusal


def _follow(capture: Session, function: Any, args: tuple[Any, ...]) -> Any:
    needs = tuple(isinstance(each, torch.Tensor) and _requires_grad(capture, function, each) for each in args)
    ctx = functions.Context(needs)
    result = capture.conversion.convert(_FORWARD)(function, ctx, args)
    given = result if isinstance(result, tuple) else (result,)
    results = tuple(each for each in given if isinstance(each, torch.Tensor))
    if not results:
        return result
    if not (any(needs) and torch.is_grad_enabled()):
        found = tuple(_handed_out(ctx, args, each) for each in given)
        return found if isinstance(result, tuple) else found[0]
    if ctx.dirty_tensors:
        raise _refused(function, "writes to its inputs", "Let forward give a new tensor.")
    if len({id(each) for each in results}) < len(results):
        raise _refused(function, "gives one tensor twice", "Give a copy of it.")
    constant = [place for place, each in enumerate(results) if _is_constant(capture, ctx, each)]
    if not ctx.materialize_grads and len(results) - len(constant) > 1:
        raise _refused(function, "takes None for a gradient", "Leave out ctx.set_materialize_grads(False).")
    inputs = tuple(each for each in args if isinstance(each, torch.Tensor))
    saved = tuple(each for each in ctx.saved_tensors if isinstance(each, torch.Tensor))
    forward = Forward(function.__name__, inputs, results, tuple(constant), saved, bool(ctx.materialize_grads))

    def backward(grads: list[Any], held: list[Any]) -> Sequence[Any]:
        return _gradients(capture, function, args, _in_backward(ctx, held), _for_each(given, grads))

    tracked = iter(stage_backward(capture, forward, backward))
    found = tuple(next(tracked) if isinstance(each, torch.Tensor) else each for each in given)
    return found if isinstance(result, tuple) else found[0]


def _handed_out(ctx: functions.Context, args: tuple[Any, ...], result: Any) -> Any:
    """A result of what autograd does not track: not an input itself, but one without gradients that it wrote to."""
    if not isinstance(result, torch.Tensor) or not any(each is result for each in args):
        return result
    if result.requires_grad:
        return result.detach()
    return result if any(each is result for each in ctx.dirty_tensors) else result.view_as(result)


_FORWARD, _BACKWARD = cast(FunctionType, functions.forward), cast(FunctionType, functions.backward)


def _requires_grad(capture: Session, function: Any, tensor: torch.Tensor) -> bool:
    fake = capture.to_fake(tensor)
    if requirement_differs(fake):
        raise _refused(function, "is given a tensor that needs gradients on one path only", "Apply it on each path.")
    return bool(fake.requires_grad)


def _is_constant(capture: Session, ctx: functions.Context, result: torch.Tensor) -> bool:
    fake = capture.to_fake(result)
    tracked = fake.is_floating_point() or fake.is_complex()
    return not tracked or any(each is result for each in ctx.non_differentiable)


def _in_backward(ctx: functions.Context, held: list[Any]) -> functions.Context:
    """The context as ``backward`` finds it."""
    inside = object.__new__(functions.Context)
    tensors = iter(held)
    vars(inside).update(vars(ctx))
    saved = tuple(next(tensors) if isinstance(each, torch.Tensor) else each for each in ctx.saved_tensors)
    vars(inside)["saved_tensors"] = saved
    return inside


def _for_each(given: tuple[Any, ...], grads: list[Any]) -> tuple[Any, ...]:
    """The gradients of all results: there are none of what is no tensor."""
    made = iter(grads)
    return tuple(next(made) if isinstance(each, torch.Tensor) else None for each in given)


def _gradients(
    capture: Session, function: Any, args: tuple[Any, ...], ctx: functions.Context, grads: tuple[Any, ...]
) -> Sequence[Any]:
    """The gradients of the tensors among the arguments."""
    given = capture.conversion.convert(_BACKWARD)(function, ctx, grads)
    is_one_each = len(given) >= len(args) and all(each is None for each in given[len(args) :])
    if not is_one_each or not all(each is None or isinstance(each, torch.Tensor) for each in given):
        raise _refused(function, "gives other gradients than one for each argument", "Give a tensor or None for each.")
    return [gradient for gradient, each in zip(given, args) if isinstance(each, torch.Tensor)]


def _refused(function: Any, what: str, hint: str) -> BaseException:
    message = f"{function.__name__}, a torch.autograd.Function that cannot be called as a whole, {what}"
    return refuse("SG304", message, location=here(), hint=hint)
