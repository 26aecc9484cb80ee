"""Reads of attributes that may run Python: properties, what is computed once, and what staged values hide."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.distributions.utils import lazy_property

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import behind_proxy, class_member, own_attributes
from stillgraph.operators.conditions.methods import got
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import of_each
from stillgraph.operators.elements.stand_ins import StandIn
from stillgraph.operators.objects.attribute_stores import set_attr, set_past_class
from stillgraph.operators.objects.registries import require_known
from stillgraph.operators.outside.hidden_state import refuse_state_of_run
from stillgraph.program.facts.module_tables import MODULE_TABLES
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.maybe_none import HIDDEN
from stillgraph.trace.control_flow.unset import attribute_read, may_be_unset, require_all, with_or_without_value
from stillgraph.trace.heap.places import MISSING, AttributePlace
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.caught import Caught
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.errors import in_eagers_words
from stillgraph.trace.values.numbers import StagedNumber


@of_each(0)
def attr(target: Any, name: str) -> Any:
    """``target.name`` where that is a property whose getter has to be converted, or what a staged value hides."""
    capture = session()
    if capture is None:
        return getattr(target, name)
    target = behind_proxy(target)
    if name == "__dict__":
        show_own(capture, target)
    if (name == "__dict__" or name in MODULE_TABLES) and isinstance(target, torch.nn.Module):
        require_known(capture, target)
        capture.dictionaries.shown(target)
    if name in HIDDEN and isinstance(target, (torch.Tensor, StagedNumber, StagedArray, StagedComplex, Caught, StandIn)):
        return _type_of(target) if name == "__class__" else getattr(target, name)
    # Asked of the class, a descriptor may give another object, as that of `torch.distributions` does.
    descriptor, receiver = class_member(type(target), name), target
    if type(target) is super and descriptor is None:
        descriptor, receiver = _inherited(target, name), target.__self__  # type: ignore[attr-defined]  # of a ``super()``
    if isinstance(descriptor, property) and isinstance(descriptor.fget, FunctionType):
        if class_member(type(receiver), "__getattr__") is None:
            return call(descriptor.fget, receiver)
        with capture.handlers.answering(AttributeError):  # which Python goes on with by ``__getattr__``
            return call(descriptor.fget, receiver)
    compute, own = _computing(descriptor, target, name), own_attributes(target)
    if compute is not None and own is not None:
        kept = own.get(name, MISSING)
        if kept is MISSING or (capture.has_unset and may_be_unset(capture, kept)):
            return with_or_without_value(capture, kept, lambda value: compute() if value is MISSING else value)
    if name == "__traceback__" and isinstance(target, BaseException):
        hint = "Look at the exception itself: its class and its text."
        raise refuse("SG305", "the frames that an exception has come by are looked at", location=here(), hint=hint)
    refuse_state_of_run(target, name)
    by_method = got(target, name)
    try:
        value = getattr(target, name) if by_method is None else by_method[0]
    except AttributeError as error:
        in_eagers_words(error)
        raise
    return attribute_read(capture, target, name, value) if capture.has_unset else value


def made_on_some_paths(capture: Session, target: Any, name: str) -> Any:
    """What an object finds by a name first, if that is there on some paths only; None where that is no matter."""
    place = AttributePlace(target, name)
    found = place.in_turn() if capture.has_unset and not place.is_computed else ()
    return found[0] if found and may_be_unset(capture, found[0]) else None


def show_own(capture: Session, target: Any) -> None:
    """To be called before code gets hold of the ``__dict__`` of an object.

    Raises:
        CaptureError: it is a tensor's, and what stands for that has another; or it has an entry on some paths only.
    """
    if isinstance(target, torch.Tensor):
        hint = "Ask for the attribute by its name."
        raise refuse("SG305", "all attributes of a tensor are asked for", location=here(), hint=hint)
    require_all(capture, own_attributes(target) or {}, type(target).__name__)
    capture.dictionaries.shown(target)


def _inherited(target: Any, name: str) -> Any:
    """What the classes behind that of a ``super()`` have by a name; None where they have nothing."""
    mro = target.__self_class__.__mro__ if target.__self_class__ is not None else ()
    behind = mro[mro.index(target.__thisclass__) + 1 :] if target.__thisclass__ in mro else ()
    return next((vars(each)[name] for each in behind if name in vars(each)), None)


def _type_of(value: Any) -> Any:
    return call(type, value)


def _computing(descriptor: Any, target: Any, name: str) -> Callable[[], Any] | None:
    """What gives an attribute that the class computes when it is asked for first, and the object has from then on."""
    if isinstance(descriptor, lazy_property):
        return functools.partial(_computed_once, descriptor, target)
    if isinstance(descriptor, functools.cached_property) and name == descriptor.attrname:
        return functools.partial(_computed_and_kept, descriptor.func, target, name)
    return None


def _computed_once(descriptor: Any, target: Any) -> Any:
    """What a property of a distribution gives when it is asked for first, which the object then has."""
    with torch.enable_grad():
        value = call(descriptor.wrapped, target)
    set_attr(target, descriptor.wrapped.__name__, value)
    return value


def _computed_and_kept(function: Callable[[Any], Any], target: Any, name: str) -> Any:
    """What a ``cached_property`` gives when it is asked for first: the object then has it, past its ``__setattr__``."""
    value = call(function, target)
    set_past_class(object.__setattr__, target, name, value)
    return value
