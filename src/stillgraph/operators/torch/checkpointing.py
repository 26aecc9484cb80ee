"""`torch.utils.checkpoint`: what ``checkpoint`` calls becomes a region that the backward pass computes once more."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from stillgraph.operators.dispatch import call
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.control_flow.autograd_regions import stage_checkpoint
from stillgraph.trace.heap.exits import Exit, Return

_OPTIONS = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")


def _checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
    capture = capturing()
    options = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs}
    if not torch.is_grad_enabled():
        return call(function, *args, **kwargs)
    detached = options.get("use_reentrant") is not False
    if detached and kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    # The reentrant kind cuts the graph at its arguments: in the region they are other tensors than outside.
    inputs = [value for value in args if isinstance(value, torch.Tensor)] if detached else []

    def block(fresh: list[Any]) -> Exit:
        given = iter(fresh)
        return Return(call(function, *(next(given) if detached and _is_tensor(v) else v for v in args), **kwargs))

    return stage_checkpoint(capture, block, inputs, options)


def _checkpoint_sequential(*args: Any, **kwargs: Any) -> Any:
    """torch's own code, with `_checkpoint` in it."""
    capture = session()
    assert capture is not None and isinstance(checkpoint_sequential, FunctionType)
    return capture.conversion.convert(checkpoint_sequential)(*args, **kwargs)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


MEANINGS: dict[Any, Callable[..., Any]] = {checkpoint: _checkpoint, checkpoint_sequential: _checkpoint_sequential}
