"""Torch's modes at an operation: gradients, inference, autocast and switches, entered around a block."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from stillgraph.program.context import Context, current_context, write_switches


class entered:
    """Run a block under a context's modes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open = contextlib.ExitStack()

    def __enter__(self) -> None:
        context = self._context
        with contextlib.ExitStack() as stack:
            # Inference mode first: on leaving, it puts back the grad mode it found.
            if context.inference:
                stack.enter_context(torch.inference_mode())
            else:
                stack.enter_context(torch.set_grad_enabled(context.grad))
            enabled = {a.device_type: a for a in context.autocast}
            for device in ("cpu", "cuda"):
                wanted = enabled.get(device)
                if wanted is not None:
                    stack.enter_context(torch.autocast(device, wanted.dtype, True, wanted.cache_enabled))
                elif torch.is_autocast_enabled(device):
                    stack.enter_context(torch.autocast(device, enabled=False))
            if context.switches:
                stack.callback(write_switches, current_context().switches)
                write_switches(context.switches)
            if context.hooks is not None:
                stack.enter_context(saved_tensors_hooks(*context.hooks))
            self._open = stack.pop_all()

    def __exit__(self, *error: Any) -> None:
        self._open.close()
