"""The current recorder of a thread: which capture is going on, made active, and left for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

from stillgraph.core.diagnostics import refusing_past_user_code
from stillgraph.program.context import IdleHooks, are_hooks_on
from stillgraph.trace.fakes import torch_modes
from stillgraph.trace.fakes.symbolic import default_device, without_traces_of_failing_kernels
from stillgraph.trace.values.arrays.trials import keep_unwritten

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

CURRENT: ContextVar[Recorder | None] = ContextVar("stillgraph_recorder", default=None)


def current() -> Recorder | None:
    """The recorder of the capture going on in this thread, if there is one."""
    return CURRENT.get()


@keep_unwritten.defined
def _keep_unwritten(tensors: Sequence[torch.Tensor]) -> None:
    recorder = current()
    assert recorder is not None
    recorder.memory.keep_unwritten(map(recorder.to_fake, tensors))


@contextlib.contextmanager
def active(recorder: Recorder) -> Iterator[None]:
    """Record what is called in the body."""
    token = CURRENT.set(recorder)
    try:
        recorder.device = default_device()
        recorder.dispatch_modes = len(torch_modes.dispatch_modes())
        hooks = IdleHooks(None) if are_hooks_on() else contextlib.nullcontext()
        quiet = without_traces_of_failing_kernels()
        with refusing_past_user_code(), hooks, recorder, torch_modes.all_left(), quiet, _watching_optimizers(recorder):
            yield
    finally:
        recorder.ended = True
        CURRENT.reset(token)


def can_step_out(recorder: Recorder) -> bool:
    """Whether no other mode was entered since: only the innermost can be left for a while."""
    modes = _get_current_function_mode_stack()
    return bool(modes) and modes[-1] is recorder


@contextlib.contextmanager
def stepping_out(recorder: Recorder) -> Iterator[None]:
    """In the body, nothing is recorded nor noted: what is called there is called for real."""
    token, watching = CURRENT.set(None), recorder.executed.pause()
    try:
        with _without(recorder):
            yield
    finally:
        recorder.executed.resume(watching)
        CURRENT.reset(token)


@contextlib.contextmanager
def _without(mode: TorchFunctionMode) -> Iterator[None]:
    """Leave one mode for a while, be it the innermost, below others that stay, or not entered at all."""
    modes = _get_current_function_mode_stack()
    above = modes[modes.index(mode) :] if mode in modes else []
    for _ in above:
        _pop_mode()
    for each in above[1:]:
        _push_mode(each)
    try:
        yield
    finally:
        for _ in above[1:]:
            _pop_mode()
        for each in above:
            _push_mode(each)


@contextlib.contextmanager
def _watching_optimizers(recorder: Recorder) -> Iterator[None]:
    """During the body no optimizer steps in this thread: it would do so on fake tensors."""

    def before_step(optimizer: Any, *_: Any) -> None:
        if current() is recorder:
            recorder.before_unseen(f"{type(optimizer).__name__}.step is called by code that is not rewritten")

    handle = register_optimizer_step_pre_hook(before_step)
    try:
        yield
    finally:
        handle.remove()
