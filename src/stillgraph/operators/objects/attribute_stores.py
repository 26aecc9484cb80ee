"""Attributes that are set and deleted: `target.name = value` and `del target.name`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_torch
from stillgraph.core.lookup import behind_proxy, class_member, own_attributes
from stillgraph.operators.conditions.methods import set_by_descriptor
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import Case, of_each
from stillgraph.operators.objects.changes import CONTAINERS, note_contents, refuse_ambiguous, set_attribute
from stillgraph.operators.objects.globals import set_global
from stillgraph.operators.objects.stores import is_generated, is_method_of_container
from stillgraph.operators.outside.hidden_state import refuse_state_of_run
from stillgraph.program.facts.info import info
from stillgraph.program.facts.module_tables import past_class
from stillgraph.program.sources import Attribute, Source, item_of
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.unset import own_attribute_read
from stillgraph.trace.heap.places import AttributePlace
from stillgraph.trace.torch_rules.tensor_classes import require_one_class
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import Parts, split
from stillgraph.trace.values.errors import BESIDE_IT
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.operands import require_one_kind, sample
from stillgraph.trace.values.text import StagedText

_OF_TENSORS = ("data", "grad", "requires_grad")


@of_each(0, cases=Case.UNJOINED)
def set_attr(target: Any, name: str, value: Any) -> None:
    """``target.name = value``."""
    capture = session()
    if capture is None:
        setattr(target, name, value)
        return
    if isinstance(target, (StagedNumber, StagedComplex, StagedText)):
        _change_sample(capture, target, lambda number: setattr(number, name, value))
        return
    target = behind_proxy(target)
    refuse_state_of_run(target, name)
    descriptor = class_member(type(target), name)
    if isinstance(descriptor, property) and isinstance(descriptor.fset, FunctionType):
        call(descriptor.fset, target, value)
        return
    if isinstance(target, torch.Tensor):
        if name not in _OF_TENSORS:
            raise refuse("SG305", f"the attribute {name} of a tensor is set", location=here(), hint=BESIDE_IT)
        setattr(target, name, value)
        return
    if isinstance(target, ModuleType):
        if hasattr(descriptor, "__set__"):
            message = f"{target.__name__}.{name} is set, which the whole process shares"
            hint = "Set it outside the static function."
            raise refuse("SG305", message, location=here(), hint=hint)
        set_global(vars(target), name, value)
        return
    if set_by_descriptor(target, name, value):
        return
    if name == "__dict__":
        _refuse_to_replace(capture, target, value)
    if not _done_by_class(target, "__setattr__", name, value):
        store: Any = type(target).__setattr__
        set_past_class(store, target, name, value)


def _change_sample(capture: Session, target: Any, change: Callable[[Any], None]) -> None:
    """Raise what Python raises where an attribute of a number or text is set or deleted."""
    if capture.may_be_none(target):
        capture.with_or_without(target, lambda v: change(v if v is None else sample(v)))
        return
    require_one_kind((target,), "gets or loses an attribute")
    change(sample(target))


def _refuse_to_replace(capture: Session, target: Any, value: Any) -> None:
    """Refuse to give an object another dictionary of attributes, unless that is as good as made with it."""
    is_known = capture.is_new(target) is not True or capture.dictionaries.is_noted(target)
    if is_known or (capture.in_arm and value is not target):
        message = f"the __dict__ of a {type(target).__name__} is replaced"
        hint = "Change the attributes one by one, or all with vars(o).clear() and vars(o).update(...)."
        raise refuse("SG305", message, location=here(), hint=hint)


def _done_by_class(target: Any, special: str, name: str, *value: Any) -> bool:
    """Let a class of the user's, if it has a ``__setattr__`` or ``__delattr__`` of its own, do it; whether it has.

    Raises:
        CaptureError: nobody knows what that writes.
    """
    own = class_member(type(target), special)
    python = isinstance(own, FunctionType)
    if own is past_class(target, special) or (python and (is_torch(own.__code__.co_filename) or is_generated(own))):
        return False
    if not python and not (is_method_of_container(own) and isinstance(target, CONTAINERS)):
        kind = type(target).__name__
        raise refuse("SG305", f"the {special} of the class {kind} is no function of Python's", location=here())
    call(own, target, name, *value)
    return True


def set_past_class(store: Callable[[Any, str, Any], None], target: Any, name: str, value: Any) -> None:
    """``store(target, name, value)``, where that is Python's or torch's ``__setattr__`` and no user's."""
    capture = capturing()
    source = capture.finder.find_owner(target)
    if isinstance(target, type) and source is None:
        raise refuse("SG305", f"the attribute {name} of a class is written that the call made", location=here())
    if isinstance(target, torch.nn.Module) and isinstance(value, torch.Tensor):
        require_one_class(value)  # which decides where torch puts it
    if source is not None:
        _promote_parts(capture, Attribute(source, name), AttributePlace(target, name).get(), value)

    def done(changed: Any) -> None:
        refuse_ambiguous(changed, name)
        _note_attribute(capture, AttributePlace(changed, name))
        store(changed, name, value)

    set_attribute(capture, target, done)
    if name == "__dict__":
        capture.dictionaries.shown(target)


def _note_attribute(capture: Session, place: AttributePlace) -> None:
    """To be called before an attribute is written; those of a dict that has itself for its ``__dict__`` are items."""
    if own_attributes(place.target) is place.target:
        note_contents(place.target)
    else:
        capture.journal.note(place)


def _promote_parts(capture: Session, source: Source, before: Any, value: Any) -> None:
    """A number that the call reads and writes is an input; so is one in a tuple or dataclass that is made anew."""
    capture.number_is_written(source, before, value)
    found = capture.finder.find(before) if type(before) is type(value) else None
    old, new = (split(before), split(value)) if found is not None and before is not value else (None, None)
    if found is None or old is None or new is None or old.context != new.context:
        return
    for key, child, other in zip(_keys(old), old.children, new.children):
        _promote_parts(capture, Attribute(found, key) if old.attributes else item_of(before, found, key), child, other)


def _keys(parts: Parts) -> Iterable[Any]:
    """By what a container's children are read: their attributes or keys, or their positions."""
    return parts.context if parts.attributes or issubclass(parts.type, dict) else range(len(parts.children))


def _may_have(capture: Session, target: torch.Tensor, name: str) -> bool:
    """Whether a tensor has been given an attribute of a name, as far as is known."""
    tensors = (target, capture.fakes.real_of(target))
    return info(target).is_joined or any(name in vars(each) for each in tensors if each is not None)


@of_each(0, cases=Case.UNJOINED)
def del_attr(target: Any, name: str) -> None:
    """``del target.name``."""
    capture = session()
    if capture is not None and isinstance(target, torch.Tensor) and _may_have(capture, target, name):
        raise refuse("SG305", f"the attribute {name} of a tensor is deleted", location=here(), hint=BESIDE_IT)
    if capture is None or isinstance(target, torch.Tensor):
        delattr(target, name)
        return
    if isinstance(target, (StagedNumber, StagedComplex, StagedText)):
        _change_sample(capture, target, lambda number: delattr(number, name))
        return
    target = behind_proxy(target)
    descriptor = class_member(type(target), name)
    if isinstance(descriptor, property) and isinstance(descriptor.fdel, FunctionType):
        call(descriptor.fdel, target)
    elif not _done_by_class(target, "__delattr__", name):
        delete: Any = type(target).__delattr__
        del_past_class(delete, target, name)


def del_past_class(delete: Callable[[Any, str], None], target: Any, name: str) -> None:
    """``delete(target, name)``, where that is Python's or torch's ``__delattr__`` and no user's."""
    capture = capturing()
    refuse_ambiguous(target, name)
    place = AttributePlace(target, name)
    if place.key not in capture.journal.written(0):
        capture.reads.attributes.append((target, name))  # it has to be there when the call begins
    if capture.has_unset:
        own_attribute_read(capture, target, name, place.get(), _words_of_deleting(target, name))
    _note_attribute(capture, place)
    delete(target, name)


def _words_of_deleting(target: Any, name: str) -> str:
    """What Python says where what a slot or a class has not is deleted; empty for any other object."""
    if isinstance(target, type):
        return f"type object '{target.__name__}' has no attribute '{name}'"
    member: Any = class_member(type(target), name)
    try:
        if isinstance(member, MemberDescriptorType):
            member.__delete__(object.__new__(type(target)))
    except (AttributeError, TypeError) as error:
        return str(error) if isinstance(error, AttributeError) else ""
    return ""
