"""Calls of torch's that are recorded kernel by kernel: transforms of `torch.func`, and gradients of a batch.

Such a call puts lanes or levels of gradients on tensors: no operation on these can be recorded as the user wrote it.
What runs below all of them is operations on plain tensors, and the program has these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_map_only

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


class _Recording(TorchDispatchMode):
    """Records each kernel that runs."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self._recorder = recorder

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        reals = self._recorder.fakes.reals
        args, kwargs = tree_map_only(torch.Tensor, lambda each: reals.get(id(each), each), (args, kwargs or {}))
        return self._recorder.to_fake(self._recorder.record(func, args, kwargs))


def by_kernels(recorder: Recorder, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What a call gives of which each kernel is recorded.

    Args:
        recorder: the capture.
        function: of torch's; it may call code of the user's.
        args, kwargs: what it is called with.
    """
    if any(isinstance(mode, _Recording) for mode in _get_current_dispatch_mode_stack()):
        return function(*args, **kwargs)
    given, named = recorder.to_fake((args, kwargs))
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode, _Recording(recorder):
        return function(*given, **named)
