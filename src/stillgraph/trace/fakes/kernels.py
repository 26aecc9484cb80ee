"""Calls of torch's that are recorded kernel by kernel: transforms of `torch.func`, and gradients of a batch.

Such a call puts lanes or levels of gradients on tensors: no operation on these can be recorded as the user wrote it.
What runs below all of them is operations on plain tensors, and the program has these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch._C._functorch as functorch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_map_only

from stillgraph.core.diagnostics import StillgraphError, refuse
from stillgraph.trace.code.frames import here

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


class _Recording(TorchDispatchMode):
    """Records each kernel that runs.

    Attributes:
        ended_by: what ends the capture, or begins it anew. Torch's code below does not expect such a thing, so it is
            raised when the call is over; until then kernels run unrecorded.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self._recorder = recorder
        self.ended_by: BaseException | None = None

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.ended_by is None and func is not torch.ops.prim.device.default:
            try:
                return self._recorded(func, args, kwargs)
            except BaseException as error:  # of any kind, but for what torch's own code raises
                if isinstance(error, Exception) and not isinstance(error, StillgraphError):
                    raise
                self.ended_by = error
        with self._recorder.symbolic.fake_mode:
            return func(*args, **kwargs)

    def _recorded(self, func: Any, args: Any, kwargs: Any) -> Any:
        recorder = self._recorder
        if any(isinstance(each, torch.Generator) for each in kwargs.values()) and _makes_generators(recorder):
            message = "a generator made in the function draws inside a transform of torch.func"
            raise refuse("SG304", message, location=here(), hint="Draw outside of the transform, and hand that in.")
        reals = recorder.fakes.reals
        args, kwargs = tree_map_only(torch.Tensor, lambda each: reals.get(id(each), each), (args, kwargs))
        return recorder.to_fake(recorder.record(func, args, kwargs))


def _makes_generators(recorder: Recorder) -> bool:
    region: Any = recorder.region
    while region is not None:
        if any(isinstance(value, torch.Generator) for value, _ in region.known.values()):
            return True
        region = region.parent
    return False


def by_kernels(recorder: Recorder, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What a call gives of which each kernel is recorded.

    Args:
        recorder: the capture.
        function: of torch's; it may call code of the user's.
        args, kwargs: what it is called with.

    Raises:
        CaptureError: a kernel cannot be recorded.
    """
    if any(isinstance(mode, _Recording) for mode in _get_current_dispatch_mode_stack()):
        return function(*args, **kwargs)
    given, named = recorder.to_fake((args, kwargs))
    recording = _Recording(recorder)
    try:
        with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode, recording:
            return function(*given, **named)
    finally:
        if recording.ended_by is not None:
            raise recording.ended_by


def outliving(value: torch.Tensor) -> torch.Tensor:
    """What a tensor is that outlives the transform it was made in; any other tensor itself.

    Raises:
        CaptureError: it does not outlive it, or it has lanes, which nobody can use any more.
    """
    while functorch.is_functorch_wrapped_tensor(value):
        if torch._C._are_functorch_transforms_active():
            message = "what is inside a transform of torch.func decides, or meets a value of the run"
            raise refuse("SG304", message, location=here(), hint=_OUTSIDE)
        if functorch.is_batchedtensor(value):
            raise refuse("SG304", "a tensor with lanes is used outside of the torch.vmap that made it", location=here())
        value = functorch.get_unwrapped(value)
    return value


_OUTSIDE = "Decide outside of the transform, or use torch.func.grad, or torch.autograd.grad with create_graph=True"
