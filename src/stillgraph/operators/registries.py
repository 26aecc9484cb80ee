"""Going through the parameters, buffers and submodules of a module: which ones there are has to be known."""

from __future__ import annotations

from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_torch
from stillgraph.trace.frames import here
from stillgraph.trace.join import may_be_parameter
from stillgraph.trace.journal import AttributePlace
from stillgraph.trace.session import Session
from stillgraph.trace.unjoined import Unjoined, alternatives

_LISTING = frozenset(
    {"parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"}
    | {"named_modules", "state_dict", "load_state_dict", "apply", "requires_grad_"}
)


def before_listing(capture: Session, function: Any, args: tuple[Any, ...]) -> None:
    """To be called before a function of Python's is called, which may be one that goes through a module.

    Raises:
        CaptureError: as `require_known`.
    """
    of_a_module = function.__name__ in _LISTING and args and isinstance(args[0], torch.nn.Module)
    if of_a_module and is_torch(function.__code__.co_filename):
        require_known(capture, args[0])


def require_known(capture: Session, module: torch.nn.Module) -> None:
    """To be called before somebody goes through a module, or through one of its tables.

    Raises:
        CaptureError: it has something there on some paths only.
    """
    places = {write.place.key: write.place for write in capture.journal.log if isinstance(write.place, AttributePlace)}
    uncertain = [p for p in places.values() if isinstance(p.target, torch.nn.Module) and _is_uncertain(capture, p)]
    if not uncertain:
        return
    inside = {id(each) for each in module.modules()}
    for place in uncertain:
        if id(place.target) in inside:
            message = f"a module is gone through, and only the run knows whether it has '{place}' as an entry"
            hint = "Set it before the branch, or go through the module outside the static function."
            raise refuse("SG305", message, location=here(), hint=hint)


def _is_uncertain(capture: Session, place: AttributePlace) -> bool:
    value = place.get()
    if place.table == "__dict__":  # where torch puts what may be a parameter, for want of knowing it
        hidden = isinstance(value, (torch.nn.Module, torch.nn.Parameter))  # as the user's code wants it
        return not hidden and _may_be_entry(value)
    return isinstance(value, Unjoined) or (isinstance(value, torch.Tensor) and capture.may_be_none(value))


def _may_be_entry(value: Any) -> bool:
    """Whether something is, on some path, what a module enters in its tables."""
    if isinstance(value, Unjoined):
        return any(map(_may_be_entry, (alternatives(value).left, alternatives(value).right)))
    return isinstance(value, torch.nn.Module) or may_be_parameter(value)
