"""Functions that ask for attributes: `getattr`, `hasattr`, `vars` and `dir`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.dispatch import call, not_
from stillgraph.operators.objects.attributes import attr, made_on_some_paths, show_own
from stillgraph.operators.objects.registries import require_known
from stillgraph.program.facts.info import info
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.uninterpreted import PROPERTIES
from stillgraph.trace.control_flow.maybe_number import may_be_number
from stillgraph.trace.control_flow.unset import attribute_or
from stillgraph.trace.values.errors import require_one_tensor
from stillgraph.trace.values.numbers import StagedNumber, kinds_of
from stillgraph.trace.values.text import StagedText


def getattr_(target: Any, name: str, *default: Any) -> Any:
    """``getattr``; an attribute may be there on some paths only."""
    capture = _asked(target, name)
    if capture.may_be_none(target):
        return capture.with_or_without(target, lambda v: getattr_(v, name, *default))
    perhaps = made_on_some_paths(capture, target, name)
    is_computed = _is_computed(target, name)
    if default and perhaps is not None and not is_computed:
        return attribute_or(capture, target, name, perhaps, lambda value: value, lambda: default[0])
    if default and (perhaps is None or is_computed) and not _is_attribute_of(target, name):
        if method_of(target, "__getattr__") is None and not is_computed:
            return getattr(target, name, *default)
        try:
            with capture.handlers.answering(AttributeError):
                return attr(target, name)
        except AttributeError:
            return default[0]
    return attr(target, name)


def hasattr_(target: Any, name: str) -> Any:
    """``hasattr``."""
    capture = _asked(target, name)
    perhaps = made_on_some_paths(capture, target, name)
    if perhaps is not None and not _is_computed(target, name):
        return attribute_or(capture, target, name, perhaps, lambda value: True, lambda: False)
    if method_of(target, "__getattr__") is not None or _is_computed(target, name):
        try:
            with capture.handlers.answering(AttributeError):
                attr(target, name)
        except AttributeError:
            return False
        return True
    if may_be_number(target):
        return _has_as_either(target, name)
    if not capture.may_be_none(target):
        own = not isinstance(target, (StagedNumber, StagedText)) and hasattr(target, name)
        return own or _is_attribute_of(target, name)
    without = hasattr(None, name)
    if without is _is_attribute_of(target, name):
        return without
    absent = capture.absence(target)
    return absent if without else capture.opposite(absent)


def _has_as_either(target: torch.Tensor, name: str) -> Any:
    """``hasattr`` of what is a tensor or a number of Python's."""
    of_tensor, *of_numbers = (hasattr(kind, name) for kind in (torch.Tensor, bool, int, float))
    if all(of_numbers) is not any(of_numbers):
        message = f"a value is asked for {name!r} of which only the run knows the kind"
        raise refuse("SG301", message, location=here())
    if of_tensor is of_numbers[0]:
        return of_tensor
    is_tensor = call(isinstance, target, torch.Tensor)
    return is_tensor if of_tensor else not_(is_tensor)


def _is_computed(target: Any, name: str) -> bool:
    stands = isinstance(target, (torch.Tensor, StagedNumber, StagedText))  # for what has another class
    return not stands and isinstance(class_member(type(target), name), PROPERTIES)


def _is_attribute_of(target: Any, name: str) -> bool:
    """Whether values of the type that a staged value stands for have an attribute."""
    if isinstance(target, StagedNumber):
        answers = {class_member(kind, name) is not None for kind in kinds_of(target)}
        if len(answers) > 1:
            message = f"whether a number has '{name}' is asked, of which the kind depends on the path"
            raise refuse("SG301", message, location=here(), hint="Ask isinstance(number, int).")
        return answers.pop()
    if isinstance(target, StagedText):
        return hasattr(str, name)
    return isinstance(target, torch.Tensor) and hasattr(torch.Tensor, name)


def _asked(target: Any, name: str) -> Session:
    capture = capturing()
    if isinstance(target, torch.Tensor) and info(target).is_joined and not hasattr(torch.Tensor, name):
        _ask_tensors(capture, target, name)
    capture.reads.attributes.append((target, name))
    return capture


def _ask_tensors(capture: Session, target: torch.Tensor, name: str) -> None:
    """Ask each tensor from before the call that one may be of which only the run knows which it is."""
    for real, _ in [*capture.fakes.by_real.values()]:
        if name in vars(real):
            require_one_tensor(target, name)
        capture.reads.attributes.append((real, name))


def all_attributes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's that gives all the attributes of an object."""

    def asked(*args: Any) -> Any:
        capture = capturing()
        capture.reads.whole.update((id(target), target) for target in args)
        for target in args:
            show_own(capture, target)
            if isinstance(target, torch.nn.Module):
                require_known(capture, target)
        return function(*map(_of_pythons_type, args))

    return asked


def _of_pythons_type(target: Any) -> Any:
    """A number or text as one that is known: it has the same attributes."""
    if isinstance(target, StagedText):
        return ""
    kinds = kinds_of(target) if isinstance(target, StagedNumber) else ()
    return next(iter(kinds))() if len(kinds) == 1 else target
