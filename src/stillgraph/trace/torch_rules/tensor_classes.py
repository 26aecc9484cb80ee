"""Of which class a tensor is: one of a class of its own passes that on to all that is computed from it, in the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.core.lookup import class_member
from stillgraph.program.facts.info import info
from stillgraph.trace.code.frames import asking_frame, here
from stillgraph.trace.fakes.symbolic import FakeTensor, is_fake
from stillgraph.trace.torch_rules.gradients import require
from stillgraph.trace.values.containers import holds_staged

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_MARKED = (torch.nn.Parameter, torch.nn.Buffer)
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
_MADE_BY = tuple(class_member(kind, "__new__") for kind in _PLAIN)
_MADE_IN = {kind.__new__.__code__: kind for kind in (torch.nn.Parameter, torch.nn.Buffer)}  # of other tensors, by code
_COMPUTED = "the class is asked of a tensor that is computed, where another tensor is of a class of its own"
_DIFFERS = "the class is asked of a tensor that is a parameter or buffer on one path, and another tensor on the other"
_EACH = "Ask on each path, before the paths meet."
_MADE = "Make it outside the static function, of the plain tensors that the function gives."
_HINT = "Ask for the class of the argument itself, or pass tensor.as_subclass(torch.Tensor)."


def classes_of(value: torch.Tensor) -> frozenset[type]:
    """Which of torch's own classes a tensor is: several where that depends on the path."""
    known = info(value).classes
    return known or frozenset({next((kind for kind in _MARKED if isinstance(value, kind)), torch.Tensor)})


def is_instance(recorder: Recorder, value: torch.Tensor, kinds: Any) -> bool:
    """``isinstance`` of the fake of a tensor.

    Raises:
        CaptureError: only the run knows.
    """
    real = recorder.fakes.real_of(value)
    if real is not None:
        return isinstance(real, kinds)
    kinds = _without_fakes(kinds)
    answers = {_is_subclass(kind, kinds) for kind in info(value).classes} or {isinstance(value, kinds)}
    if len(answers) > 1:
        require_one_class(value)
    plain = answers.pop()
    if any(isinstance(each, kinds) is not plain for each in _of_classes_of_their_own(recorder)):
        raise refuse("SG301", _COMPUTED, location=here(), hint=_HINT)
    return plain


def _is_subclass(kind: type, kinds: Any) -> bool:
    return any(_is_subclass(kind, each) for each in kinds) if isinstance(kinds, tuple) else issubclass(kind, kinds)


def _without_fakes(kinds: Any) -> Any:
    """Classes to ask for, without that of what stands for tensors in a capture: torch's code treats those apart."""
    return tuple(map(_without_fakes, kinds)) if isinstance(kinds, tuple) else () if kinds is FakeTensor else kinds


def class_of_tensor(recorder: Recorder, value: torch.Tensor) -> type:
    """``type`` of the fake of a tensor.

    Raises:
        CaptureError: only the run knows.
    """
    real = recorder.fakes.real_of(value)
    if real is not None:
        return type(real)
    if _of_classes_of_their_own(recorder):
        raise refuse("SG301", _COMPUTED, location=here(), hint=_HINT)
    require_one_class(value)
    return torch.nn.Parameter if torch.nn.Parameter in classes_of(value) else torch.Tensor


def require_one_class(value: torch.Tensor) -> None:
    """To be called before it matters whether a tensor is a parameter or a buffer.

    Raises:
        CaptureError: only the run knows.
    """
    if len(classes_of(value)) > 1:
        raise refuse("SG301", _DIFFERS, location=here(), hint=_EACH)


def _of_classes_of_their_own(recorder: Recorder) -> list[torch.Tensor]:
    return [real for real, _ in recorder.fakes.by_real.values() if type(real) not in _PLAIN]


def require_plain(recorder: Recorder, kind: Any) -> None:
    """To be called before ``as_subclass``: a program has nothing that gives a tensor a class.

    Raises:
        CaptureError: it would have to.
    """
    if kind is not torch.Tensor or _of_classes_of_their_own(recorder):
        hint = "Call it outside the static function, and pass the tensor that it gives."
        raise refuse("SG304", "as_subclass makes a tensor of another class", location=here(), hint=hint)


def require_makeable(kind: type) -> None:
    """To be called before a class is: no program makes a tensor of a class of its own out of another tensor.

    Raises:
        CaptureError: it would have to.
    """
    if issubclass(kind, torch.Tensor) and kind not in _PLAIN and class_member(kind, "__new__") in _MADE_BY:
        raise refuse_class(kind, "is made", location=here())


def make_subclass(kind: Any, data: Any, require_grad: bool = False) -> Any:
    """``torch.Tensor._make_subclass``, which changes the class of what it is given.

    Raises:
        CaptureError: that is a tensor of the run.
    """
    if kind not in _PLAIN and is_fake(data):
        raise refuse_class(kind, "is made", location=here())
    return torch.Tensor._make_subclass(kind, data, require_grad)


def is_made_of_fakes(value: torch.Tensor, is_new: bool | None) -> bool:
    """Whether a tensor that is no fake stands for one of the run all the same: it is of a class that wraps others."""
    return type(value) not in _PLAIN and (is_new is True or holds_staged(value))


def refuse_class(kind: type, what: str, location: Location | None = None) -> BaseException:
    """The refusal of a tensor of a class of its own that the function makes."""
    message = f"a {kind.__name__}, a tensor of a class of its own that the function makes, {what}"
    return refuse("SG304", message, location=location, hint=_MADE)


# ---- parameters and buffers that torch's code makes, which is not followed: those of a layer that the function makes
def _detach(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.detach()``: torch's classes begin with it where they make a tensor of their own of another one."""
    kind, options = _being_made()
    if kind is not None and _is_to_be_swapped():
        recorder.tensor_demanded(args[0], "swap")
    return recorder.record(kind or func, args, options if kind else kwargs)


def _require(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.requires_grad_(value)``: with it they go on, when it has been made already."""
    return require(recorder, func, args, kwargs) if _being_made()[0] is None else args[0]


def _being_made() -> tuple[Any, dict[str, Any]]:
    """The class that is at work, and what it has been told besides the tensor."""
    frame = asking_frame()
    kind = None if frame is None else _MADE_IN.get(frame.f_code)
    if frame is None or kind is None:
        return None, {}
    return kind, {name: frame.f_locals[name] for name in ("requires_grad", "persistent") if name in frame.f_locals}


def _is_to_be_swapped() -> bool:
    """Whether ``module.to`` and its kin make the parameter: where eager PyTorch sets ``data``, they swap fakes."""
    frame = asking_frame()
    by = None if frame is None else frame.f_back
    return by is not None and by.f_code is torch.nn.Module._apply.__code__ and is_fake(by.f_locals.get("param"))


HANDLERS = {torch.Tensor.detach: _detach, torch.Tensor.requires_grad_: _require}
