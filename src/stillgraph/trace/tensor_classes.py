"""Of which class a tensor is: one of a class of its own passes that on to all that is computed from it, in the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.frames import here

if TYPE_CHECKING:
    from stillgraph.trace.recorder import Recorder

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
_COMPUTED = "the class is asked of a tensor that is computed, where another tensor is of a class of its own"
_HINT = "Ask for the class of the argument itself, or pass tensor.as_subclass(torch.Tensor)."


def is_instance(recorder: Recorder, value: torch.Tensor, kinds: Any) -> bool:
    """``isinstance`` of the fake of a tensor.

    Raises:
        CaptureError: only the run knows.
    """
    real = recorder.from_before(value)
    if real is not None:
        return isinstance(real, kinds)
    plain = isinstance(value, kinds)
    if any(isinstance(each, kinds) is not plain for each in _of_classes_of_their_own(recorder)):
        raise refuse("SG301", _COMPUTED, location=here(), hint=_HINT)
    return plain


def class_of_tensor(recorder: Recorder, value: torch.Tensor) -> type:
    """``type`` of the fake of a tensor.

    Raises:
        CaptureError: only the run knows.
    """
    real = recorder.from_before(value)
    if real is not None:
        return type(real)
    if _of_classes_of_their_own(recorder):
        raise refuse("SG301", _COMPUTED, location=here(), hint=_HINT)
    return torch.nn.Parameter if isinstance(value, torch.nn.Parameter) else torch.Tensor


def _of_classes_of_their_own(recorder: Recorder) -> list[torch.Tensor]:
    return [real for real, _ in recorder.fakes.values() if type(real) not in _PLAIN]


def require_plain(recorder: Recorder, kind: Any) -> None:
    """To be called before ``as_subclass``: a program has nothing that gives a tensor a class.

    Raises:
        CaptureError: it would have to.
    """
    if kind is not torch.Tensor or _of_classes_of_their_own(recorder):
        hint = "Call it outside the static function, and pass the tensor that it gives."
        raise refuse("SG304", "as_subclass makes a tensor of another class", location=here(), hint=hint)
