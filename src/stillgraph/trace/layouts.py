"""How tensors lie in memory, where paths leave one in different ways: only the run can answer who asks.

What a branch or loop gives is contiguous in the capture. Its memory in the run is that of the path taken, and what is
computed from it lies likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from stillgraph.trace.recorder import Recorder



def let_vary(tensor: torch.Tensor) -> None:
    """Tell of a tensor that its memory depends on the path taken."""
    if tensor.dim() > 0:
        tensor.stillgraph_layout_varies = True  # type: ignore[attr-defined]  # ours


def hand_on(args: Iterable[Any], result: Any) -> None:
    """Let the results of an operation vary where one of its arguments does."""
    if not any(map(_varies, args)):
        return
    for each in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(each, torch.Tensor):
            let_vary(each)


def _varies(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_varies, value))
    return isinstance(value, torch.Tensor) and getattr(value, "stillgraph_layout_varies", False)


def asked(known: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A handler of a question about a tensor's memory.

    Args:
        known: the handler for a tensor whose memory does not vary, if it is not simply run.
    """

    def handler(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
        tensor, *more = args
        if not _varies(tensor):
            return recorder.record(func, args, kwargs) if known is None else known(recorder, func, args, kwargs)
        name: str = func.__name__
        if name == "stride" and not more and not kwargs:
            return tuple(_in_the_run(recorder, name, int, (tensor, dim), {}) for dim in range(tensor.dim()))
        return _in_the_run(recorder, name, bool if name == "is_contiguous" else int, args, kwargs)

    return handler


def contiguous(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``contiguous``: where only the run knows whether that makes a copy, what it gives counts as another tensor."""
    if not _varies(args[0]) or kwargs.get("memory_format", torch.contiguous_format) is not torch.contiguous_format:
        return recorder.record(func, args, kwargs)
    copy = recorder.run(torch.Tensor.clone, (args[0],), {"memory_format": torch.contiguous_format})
    return recorder.bind(copy, recorder.emit("call_method", "contiguous", args, kwargs))


def _in_the_run(recorder: Recorder, name: str, kind: type, args: Any, kwargs: Any) -> Any:
    return recorder.fresh_result(kind, recorder.emit("call_method", name, args, kwargs))
