"""Objects written in C that were there before: what their methods do to them, no program could repeat.

A connection, a checksum, a compressor, a lock: a capture does not see what is in them, so it can neither put them back
nor tell which call finds them how. What the function itself makes is its own affair.
"""

from __future__ import annotations

import _ctypes
import array
import collections
import contextvars
import datetime
import decimal
import functools
import io
import random
import re
import struct
import types
import weakref
import zoneinfo
from collections.abc import ItemsView, KeysView, ValuesView
from types import BuiltinMethodType, MethodType, MethodWrapperType
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_library, is_our_module
from stillgraph.core.lookup import of_class
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here, user_frame
from stillgraph.trace.code.namespaces import is_of_its_module
from stillgraph.trace.effects.locks import LOCKS, WRITTEN_IN_C, is_taken_by_others
from stillgraph.trace.effects.threads import concerns_others, refused
from stillgraph.trace.guards.allocations import is_plain_object, is_shared
from stillgraph.trace.guards.argument_structure import is_constant

_FOLLOWED: tuple[type, ...] = (
    *(list, dict, set, frozenset, tuple, collections.deque, array.array, bytearray, memoryview, torch.Tensor),
    *(KeysView, ValuesView, ItemsView, type({}.keys()), type({}.values()), type({}.items())),
    *(re.Pattern, re.Match, types.MappingProxyType, types.FunctionType, functools.partial, weakref.ref, property),
    *(random.Random, contextvars.ContextVar, contextvars.Token, BaseException, type, types.ModuleType, type(None)),
)
"""What captures write down, or what has nothing to change."""

_UNCHANGING = (
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, zoneinfo.ZoneInfo, decimal.Decimal),
    *(struct.Struct, range, slice, types.CodeType, types.GenericAlias, types.UnionType),
)
_UNCHANGING_BY_NAME = frozenset({("_regex", "Pattern"), ("_regex", "Match")})
"""Those of libraries that may not be there: of ``regex``, which tokenizers use."""

_LIBRARIES = ("torch", "numpy", "pybind11_builtins")
"""The last is of what plain functions of C++ extensions have for a ``__self__``: nothing but a description of them."""

_CHANGING = frozenset(
    {"__setitem__", "__delitem__", "__setattr__", "__delattr__", "__enter__", "__exit__", "__next__", "__init__"}
)
_STORING = ("__setattr__", "__delattr__")
_HINT = "Call it outside the static function, and pass what it gives; or make the object in the function."


def may_change_what_was_there(function: Any) -> bool:
    """Whether a call may change an object from before that nobody follows, or tell what another call has changed."""
    capture = session()
    if capture is None:
        return False
    if isinstance(function, MethodType) and function.__func__ is RemovableHandle.remove:
        return not capture.is_new(function.__self__)
    if isinstance(function, _ctypes.CFuncPtr):
        return True  # a function of C's that nobody knows anything about
    if not isinstance(function, (BuiltinMethodType, MethodWrapperType)):
        return False
    name, receiver = function.__name__, function.__self__
    if name in _STORING and getattr(function, "__objclass__", None) is object and is_plain_object(receiver):
        return False  # what ``super().__setattr__`` of a class of Python's stores, `stores` notes
    return not (name.startswith("__") and name not in _CHANGING) and is_foreign(capture, receiver)


def is_foreign(capture: Session, value: Any) -> bool:
    """Whether an object is one of C's, with a state of its own, that was there before the capture."""
    if isinstance(value, (*_FOLLOWED, *_UNCHANGING)) or is_constant(value):
        return False
    module = str(type(value).__module__)
    if module.partition(".")[0] in _LIBRARIES or is_our_module(module) or is_of_its_module(value):
        return False
    if (module, type(value).__qualname__) in _UNCHANGING_BY_NAME:
        return False
    return not is_shared(value, lambda each: True) and capture.elsewhere.was_there(value)


def before_method(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """To be called before a method of an object of C's, or a function of C's behind ``ctypes``.

    Raises:
        CaptureError: the user's code does what each call would have to do, or asks what each call would have to ask.
    """
    receiver = getattr(function, "__self__", None)
    if isinstance(receiver, io.IOBase) or not may_change_what_was_there(function):  # `acts` knows streams
        return
    name, frame = getattr(function, "__name__", "it"), user_frame()
    gives_back = isinstance(receiver, LOCKS) and name == "release"
    if not gives_back and frame is not None and is_library(frame.f_code.co_filename):
        return
    if isinstance(receiver, LOCKS) and not args and not kwargs and _is_one_of_a_pair(capture, function):
        if name == "acquire":
            _require_free(capture, receiver)
        return
    if receiver is None:
        message = f"{name} is called, a function of C's that may do anything"
        hint = "Call it outside the static function, and pass what it gives."
        raise refuse("SG305", message, location=here(), hint=hint)
    message = f"{name} is called of a {type(receiver).__name__} that was there before the call, whose state each call "
    raise refuse("SG305", message + "would find another", location=here(), hint=_HINT)


def _is_one_of_a_pair(capture: Session, function: Any) -> bool:
    """Whether a lock is taken, to be given back in the same call, or given back that the same call has taken."""
    if function.__name__ == "release":
        return capture.locks.has_taken(function.__self__)
    return bool(function.__name__ == "acquire")


def _require_free(capture: Session, lock: Any) -> None:
    """To be called before a lock is waited for: what other threads do in the meantime would be put back."""
    if capture.elsewhere.was_there(lock) and is_taken_by_others(lock):
        message = "a lock is taken that another thread has, which goes on beside a capture"
        hint = "Make the first call before the other threads begin, or take the lock outside the static function."
        raise refuse("SG305", message, location=here(), hint=hint)


def before_entering(capture: Session, manager: Any) -> None:
    """To be called before a ``with`` statement enters a manager; a lock is given back at the block's end.

    Raises:
        CaptureError: as `before_method`.
    """
    enter = of_class(manager, "__enter__")
    if isinstance(enter, types.FunctionType) and concerns_others(types.MethodType(enter, manager), capture.elsewhere):
        raise refused(enter)
    if isinstance(manager, WRITTEN_IN_C):
        _require_free(capture, manager)
    if enter is None or isinstance(enter, types.FunctionType) or isinstance(manager, LOCKS):
        return
    before_method(capture, manager.__enter__, (), {})
