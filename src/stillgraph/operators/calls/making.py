"""Instances of classes: what ``type.__call__`` does, and what a metaclass of the user's does in its place."""

from __future__ import annotations

import collections
import sys
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeGuard

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_dependency, is_distributions, is_torch
from stillgraph.core.lookup import class_member
from stillgraph.operators.calls.left_alone import call_left_alone
from stillgraph.operators.consumers.consumers import made
from stillgraph.operators.dispatch import call, call_function
from stillgraph.operators.elements import lists
from stillgraph.operators.outside.unseen import initialiser
from stillgraph.operators.python.enumerations import is_looked_up, member_of
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.torch_rules.tensor_classes import require_makeable
from stillgraph.trace.values.entries import container_of, some_keys


def refuse_spread(function: Any, args: tuple[Any, ...]) -> None:
    """Refuse to hand a container of unknown length to code that cannot know what it is."""
    name = getattr(function, "__name__", str(function))
    if any(lists.is_spread(argument) for argument in args):
        given = next(argument for argument in args if lists.is_spread(argument))
        raise refuse_unknown("SG210", f"{name} is given {called(given)}, a list of unknown length", given)
    if any(container_of(argument) is not None for argument in args) and function not in (dict, set, frozenset):
        given = next(argument for argument in args if container_of(argument) is not None)
        raise refuse_unknown("SG211", f"{name} is given {called(given)}, {some_keys(given)}", given)


def construct(capture: Session, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the call of a class gives.

    Raises:
        CaptureError: the program could not make one.
    """
    require_makeable(kind)
    ending = class_member(kind, "__del__")
    own = isinstance(ending, FunctionType) and not is_dependency(ending.__code__.co_filename)
    if kind is weakref.finalize or own:
        message = f"a {kind.__name__} is made: what is done when an object is gone, the program would not do"
        raise refuse("SG305", message, location=here(), hint="Make it outside the static function.")
    made = getattr(kind, "__init__", None)
    if isinstance(made, FunctionType) and is_distributions(made.__code__.co_filename):
        capture.conversion.before_distribution()
    takes_any = any(kind is each for each in (collections.Counter, collections.deque, collections.UserList))
    if kind.__module__ in sys.stdlib_module_names and not takes_any:
        refuse_spread(kind, args)
    calling: Any = class_member(type(kind), "__call__")
    if _is_followed(calling, capture):
        return call_function(capture, calling, (kind, *args), kwargs)
    if is_looked_up(kind, args, kwargs):
        return member_of(capture, kind, *args)
    return make(capture, kind, kind, args, kwargs)


def make(
    capture: Session, plainly: Callable[..., Any], kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What ``type.__call__`` does; where none of the user's code has a part in it, ``plainly`` does it."""
    filled = made(kind, args, kwargs)
    if filled is not None:
        return filled
    init = initialiser(capture, kind, by_type=plainly is not kind)
    new: Any = kind.__new__
    follows = not issubclass(kind, torch.Tensor) and _is_followed(new, capture)
    if init is None and not follows:
        alone = next((each for each in (new, getattr(kind, "__init__", None)) if _is_left_alone(capture, each)), None)
        if alone is None:
            return plainly(*args, **kwargs)
        return call_left_alone(capture, alone, plainly, args, kwargs)
    if follows:
        instance: Any = call_function(capture, new, (kind, *args), kwargs)
    else:
        instance = new(kind) if new is object.__new__ else new(kind, *args)
    return _initialised(capture, kind, instance, args, kwargs)


def _initialised(capture: Session, kind: type, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ``__new__`` has given, its ``__init__`` called as ``type.__call__`` does."""
    if isinstance(instance, Unjoined):
        return instance.either(lambda each: _initialised(capture, kind, each, args, kwargs))
    if not isinstance(instance, kind):
        return instance
    set_up: Any = type(instance).__init__
    if isinstance(set_up, FunctionType):
        call_function(capture, set_up, (instance, *args), kwargs)
    elif set_up is not object.__init__:
        call(set_up, instance, *args, **kwargs)
    return instance


def _is_left_alone(capture: Session, function: Any) -> TypeGuard[FunctionType]:
    """Whether a function is one of Python's that the user wants to be left as it is."""
    return isinstance(function, FunctionType) and capture.conversion.skipped(function)


def _is_followed(function: Any, capture: Session) -> TypeGuard[FunctionType]:
    """Whether a special method that makes objects is written in Python, and may do anything."""
    if not isinstance(function, FunctionType) or function.__code__.co_filename.startswith("<"):
        return False
    return not is_torch(function.__code__.co_filename) and capture.conversion.wants(function)
