"""What code asks of tensors from before the call besides their metadata: the program is for those answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.facts.facts import FACTS, fact
from stillgraph.program.facts.info import info
from stillgraph.trace.code.frames import here
from stillgraph.trace.torch_rules import layouts

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor


def ask(recorder: Recorder, name: str, tensor: torch.Tensor, read: Callable[[Any], Any]) -> Any:
    """What ``read`` gives for the fake of a tensor; for one from before the call it is noted, to be guarded."""
    fake = recorder.to_fake(tensor)
    real = recorder.fakes.real_of(tensor)
    if name == "_version":
        _require_first_version(recorder, fake, real)
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        answer, writes = read(fake), 0 if fake.is_inference() else fake._version
    if real is None:
        return answer
    recorder.facts.append((real, name))
    value = fact(name, real)
    if name in _NOT_OF_FAKES:
        return answer or value
    if name == "_version" and not writes:
        return value
    # A tensor that the call has written to, or of which it has another fake, is what the fake says.
    unlike = name in _AS_THEY_ARE and bool(value) is not bool(answer is None if name in _WHOLE else answer)
    if not writes and (unlike or (name in _WHOLE and not value)):
        raise refuse("SG301", f"{name} of a tensor from before the call is read", location=here())
    return answer


def before_hash(tensor: torch.Tensor) -> None:
    """To be called before a tensor is looked up by where it is in memory.

    Raises:
        CaptureError: only the run knows which tensor it is.
    """
    if info(tensor).is_joined:
        message = "a tensor is looked up or kept by its hash, of which only the run knows whether it is one from before"
        raise refuse("SG301", message, location=here(), hint=_COMPARED)


_COMPARED = "Ask 'y is key' of each key, or keep a number beside the tensor and look that up."
_NOT_OF_FAKES = frozenset({"retains_grad", "is_shared", "is_pinned"})
_WHOLE = frozenset({"grad_fn", "_base", "_backward_hooks"})  # guarded only on being None
_AS_THEY_ARE = frozenset({"is_leaf", "_is_view", "is_inference", *_WHOLE})


def _require_first_version(recorder: Recorder, fake: torch.Tensor, real: torch.Tensor | None) -> None:
    """Refuse to count the writes to a tensor: a program may do them in another number, and on some paths only."""
    if real is None or recorder.in_arm or info(fake).is_joined or _is_written(fake):
        message = "_version, which counts the writes to a tensor, is asked of one that the call makes or writes to"
        raise refuse("SG301", message, location=here(), hint="Count the writes in a variable of your own.")


def _is_written(fake: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return not fake.is_inference() and fake._version > 0


def _method(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    return ask(recorder, func.__name__, args[0], lambda fake: func(fake, *args[1:], **kwargs))


def _of_one(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """What differs between tensors that paths leave, while their values have one dtype: only the run knows it."""
    fake = recorder.to_fake(args[0])
    if info(fake).is_joined and (func not in _OF_COMPLEX or fake.is_complex()):
        return _refused(recorder, func, args, kwargs)
    return _method(recorder, func, args, kwargs) if func is _T._is_view else func(fake)


_OF_COMPLEX = (_T.is_conj, torch.is_conj)


def _refused(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    raise refuse("SG301", f"{func.__name__}() of a tensor is asked for, which only the run knows", location=here())


def _offset(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    if info(recorder.to_fake(args[0])).offset_lost:
        return _refused(recorder, func, args, kwargs)
    return layouts.asked(_method)(recorder, func, args, kwargs)


def _copied_flat(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """A copy by ``copy.copy`` shares the tensor's memory and is a leaf, which no operation of torch's gives."""
    message = "copy.copy makes a second tensor of a tensor's memory, which is a leaf for autograd"
    raise refuse("SG301", message, location=here(), hint="Use the tensor itself, .detach(), or copy it outside.")


HANDLERS: dict[Any, Callable[..., Any]] = {
    **{getattr(_T, n): _method for n in ("is_inference", "is_shared", "is_pinned")},
    **dict.fromkeys((_T._is_view, _T.is_conj, torch.is_conj, _T.is_neg, torch.is_neg), _of_one),
    _T.contiguous: layouts.contiguous,
    _T.storage_offset: _offset,
    **{getattr(_T, name): layouts.asked() for name in ("stride", "is_contiguous")},
    torch.is_inference: _method,
    **{getattr(_T, n): _refused for n in ("data_ptr", "storage", "untyped_storage", "_typed_storage")},
    _T.__reduce_ex__: _copied_flat,
}
ATTRIBUTES = frozenset(FACTS.keys() - {"layout", "is_contiguous", "_is_view", "storage_offset"})
