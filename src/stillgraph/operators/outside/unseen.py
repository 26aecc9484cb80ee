"""Code that is not rewritten and is handed a value that is None or another on some path: what it asks is Python's own.

Its ``is None`` and ``isinstance`` would be told of what stands for the value. Such a call is made once for each
alternative, in the arms of a branch, be the value an argument or what an attribute, an element or a variable holds. A
library's code is converted instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

import torch
from torch.overrides import get_testing_overrides
from torch.utils._pytree import is_namedtuple_instance

from stillgraph.core.dataclasses import has_steps
from stillgraph.core.files import is_library, is_torch
from stillgraph.core.lookup import class_member
from stillgraph.operators.dispatch import call
from stillgraph.trace.capture.session import Session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, is_lost
from stillgraph.trace.control_flow.narrowing import exchanged, leaves
from stillgraph.trace.control_flow.reachable_values import places_within
from stillgraph.trace.heap.contents import is_same
from stillgraph.trace.heap.places import ContentsPlace, Place


def with_each(capture: Session, function: Any, args: Any, kwargs: Any) -> tuple[Any] | None:
    """A call made for each alternative, if code that is not rewritten finds what is several; the result, in a tuple.

    Args:
        capture: the one that goes on.
        function: what is called.
        args: with what.
        kwargs: with what, by name.

    Returns:
        None if no such code runs, or it finds no such value: the call is like any other.

    Raises:
        Restart: the code is a library's, which can be converted.
    """

    def given(value: Any) -> Any:
        args, kwargs = exchanged(arguments, uncertain, value)
        return call(function, *args, **kwargs)

    arguments = args, kwargs
    uncertain = next((v for v in leaves(arguments) if _is_uncertain(capture, v)), None)
    if isinstance(function, type):
        unseen = uncertain is not None and _is_made_unseen(capture, function)
        return (_either(capture, uncertain, given),) if unseen else None
    code = _code_behind(capture, function)
    if code is None or capture.is_rewritten(code.__code__) or capture.conversion.wants(code):
        return None
    if not _is_torchs(code):
        handed = (function, code, *args, *kwargs.values())
        result = _with_each_held(capture, lambda: call(function, *args, **kwargs), code, handed)
        if result is not None or uncertain is None:
            return result
    if uncertain is None:
        return None
    _want_conversion(capture, code)
    return (_either(capture, uncertain, given),)


def _with_each_held(capture: Session, again: Any, code: FunctionType, handed: Any) -> tuple[Any] | None:
    """As `with_each`, for values that attributes, variables and the contents of containers hold."""
    places = ((place, held, v) for place, held in places_within(handed) for v in _parts(place, held))
    with capture.executed.paused():
        found = next((each for each in places if _is_uncertain(capture, each[-1])), None)
    if found is None:
        return None
    place, held, uncertain = found
    _want_conversion(capture, code)

    def given(value: Any) -> Any:
        there = exchanged(held, uncertain, value)
        capture.journal.write(place, there)
        result = again()
        if is_same(place.get(), there):
            capture.journal.write(place, held)
        return result

    return (_either(capture, uncertain, given),)


def _parts(place: Place, held: Any) -> Iterator[Any]:
    """What a place itself holds, tuples taken apart; what is in a list that it holds is in a place of its own."""
    if isinstance(place, ContentsPlace):
        queue = list(held.values() if isinstance(held, dict) else held)
    else:
        queue = [held]
    while queue:
        value = queue.pop()
        if type(value) is tuple or is_namedtuple_instance(value):
            queue += value
        else:
            yield value


def _either(capture: Session, uncertain: Any, given: Callable[[Any], Any]) -> Any:
    return uncertain.either(given) if isinstance(uncertain, Unjoined) else capture.with_or_without(uncertain, given)


def _want_conversion(capture: Session, code: FunctionType) -> None:
    if not capture.conversion.skipped(code) and is_library(code.__code__.co_filename) and not _is_torchs(code):
        capture.follow_libraries()


def _is_uncertain(capture: Session, value: Any) -> bool:
    """Whether a value is one of several, by the path, of which code that asks has to see one."""
    return bool(capture.may_be_none(value)) or (isinstance(value, Unjoined) and not is_lost(value))


def _is_made_unseen(capture: Session, kind: type) -> bool:
    """Whether Python code that is not rewritten runs when an object is made; what `dataclass` writes only stores."""
    made = [getattr(kind, name, None) for name in ("__new__", "__init__", "__post_init__")]
    code = [each for each in made if isinstance(each, FunctionType) and not _is_generated(each)]
    if not code or code == made[1:2]:
        return bool(code) and initialiser(capture, kind) is None
    return True


def _is_generated(function: FunctionType) -> bool:
    return function.__code__.co_filename.startswith("<")


def initialiser(capture: Session, kind: type, by_type: bool = False) -> FunctionType | None:
    """The ``__init__`` of a class, if it is called by itself and converted.

    Args:
        capture: the session.
        kind: the class.
        by_type: whether it is ``type.__call__`` that makes the object, whatever a metaclass does around it.
    """
    init: Any = vars(kind).get("__init__") or getattr(kind, "__init__", None)
    make: Any = kind.__new__
    by_python = make is object.__new__ or (issubclass(kind, BaseException) and isinstance(make, BuiltinMethodType))
    by_type = by_type or class_member(type(kind), "__call__") is type.__dict__["__call__"]
    if not by_type or not by_python or not isinstance(init, FunctionType):
        return None
    is_plain = _is_generated(init) and not has_steps(init.__code__)
    return init if capture.conversion.wants(init) and not is_plain else None


def _is_torchs(function: FunctionType) -> bool:
    return is_torch(function.__code__.co_filename)


def _code_behind(capture: Session, function: Any) -> FunctionType | None:
    """The Python function that runs when something is called; None where what runs is not Python, or ours to decide."""
    if isinstance(function, torch.nn.Module):
        forward = getattr(function.forward, "__func__", None)
        own = type(function).__call__ is not torch.nn.Module.__call__
        if own or not isinstance(forward, FunctionType) or not _is_torchs(forward) or _calls_another(forward):
            return None
        return None if forward is torch.nn.Sequential.forward else forward
    if isinstance(function, MethodType):
        function = function.__func__
        if function is torch.nn.Module.__call__ or function is torch.nn.Sequential.forward:
            return None
    if not isinstance(function, FunctionType) and not hasattr(type(function), "__stillgraph_behind__"):
        function = class_member(type(function), "__call__")
    if not isinstance(function, FunctionType) or _is_recorded(function) or _calls_another(function):
        return None
    return function


def _is_recorded(function: FunctionType) -> bool:
    """Whether a function of torch's becomes one operation of the program, and is told of None by `Session.record`."""
    return _is_torchs(function) and function in get_testing_overrides()


def _calls_another(function: FunctionType) -> bool:
    """Whether a function only surrounds another one, which `call` finds."""
    code = function.__code__
    return code.co_name in ("decorate_context", "decorate_autocast", "helper") and hasattr(function, "__wrapped__")
