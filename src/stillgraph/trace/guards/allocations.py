"""What a capture makes: what each call makes anew from its attributes, what calls may share, and what is neither."""

from __future__ import annotations

import _thread
import array
import contextlib
import dis
import enum
import functools
import re
import types
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import torch

from stillgraph.core.identity_cache import weakly_cached
from stillgraph.core.lookup import is_plainly_kept, own_attributes, slots
from stillgraph.core.parcel import Parcel
from stillgraph.program.outputs import BOUND
from stillgraph.trace.guards.argument_structure import is_constant

_SHARED = (
    *(torch.nn.Module, torch.layout, torch.memory_format, enum.Enum, BaseException, re.Pattern, re.Match),
    *(types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.CodeType, types.GenericAlias, types.EllipsisType),
    *(types.NotImplementedType, types.MappingProxyType, property, classmethod, staticmethod),
)
"""Nobody can write to these, or nobody minds which one it is."""

_UNTRACKED = (_thread.LockType, type(_thread.RLock()))
"""Objects with a state that Python's garbage collector does not know."""


def is_plain_object(value: Any) -> bool:
    """Whether an object is all in its ``__dict__`` and slots: one that is made of the same attributes is like it."""
    kind = type(value)
    if kind is types.SimpleNamespace:
        return True
    if isinstance(value, (type, BaseException, torch.nn.Module)):
        return False
    if not isinstance(own_attributes(value), dict) and not slots(kind):
        return False
    try:
        object.__new__(kind)
    except TypeError:  # it has a base written in C, with a state of its own
        return False
    return is_plainly_kept(value)


def is_shared(value: Any, is_new: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether all calls may be given one object, for it was there before, or nobody can tell one from another.

    Args:
        value: no container, and no object that is made anew.
        is_new: asked of an object: whether the capture has made it; None where it does not know.
        seen: the functions that are being looked at, by their ids.
    """
    if is_constant(value) or isinstance(value, (*_SHARED, torch.Tensor)) or id(value) in seen:
        return True
    if isinstance(value, (bytearray, array.array)) or hasattr(type(value), "__array_interface__"):
        return True  # each call is given a copy
    if isinstance(value, BOUND):
        inside = [value.__self__, *([value.__func__] if isinstance(value, types.MethodType) else [])]
        return all(each is None or is_shared(each, is_new, seen) for each in inside)
    if isinstance(value, weakref.ref):
        return not is_new(value()) and is_shared(value(), is_new, seen)
    if isinstance(value, FunctionType):
        inside = [*_contents(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        if writes_outside(value.__code__) or (any(map(_differs, inside)) and is_new(value)):
            return False
        return all(is_shared(each, is_new, seen | {id(value)}) for each in inside)
    if type(value) is functools.partial:
        inside = [value.func, *value.args, *value.keywords.values()]
        if any(map(_differs, inside)) and is_new(value):
            return False
        return all(is_shared(each, is_new, seen) for each in inside)
    return not is_new(value) and not isinstance(value, _UNTRACKED)


def _differs(value: Any) -> bool:
    """Whether another call may come upon another one, which no guard tells of: a tensor is an input of the program."""
    if isinstance(value, tuple):
        return any(map(_differs, value))
    return isinstance(value, (torch.Tensor, Parcel))


def has_shared_methods(kind: type, is_new: Any) -> bool:
    """Whether objects of a class can outlive the capture: its methods keep nothing of the function that made it."""
    if not is_new(kind):
        return True
    members = (getattr(member, "__func__", member) for base in kind.__mro__ for member in vars(base).values())
    return all(is_shared(member, is_new) for member in members if isinstance(member, FunctionType))


def kept(function: FunctionType, is_new: Any) -> list[str]:
    """The variables by which a function keeps something of the call that has made it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    found = [name for name, cell in cells if not all(is_shared(each, is_new) for each in _content(cell))]
    return found or list(function.__code__.co_freevars)


def _contents(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        yield from _content(cell)


def _content(cell: types.CellType) -> Iterator[Any]:
    with contextlib.suppress(ValueError):  # it is empty
        yield cell.cell_contents


@weakly_cached
def writes_outside(code: CodeType) -> bool:
    """Whether a function, or one in it, writes to variables that it shares with the function around it."""
    return _writes(code, set(code.co_freevars))


def _writes(code: CodeType, free: set[str]) -> bool:
    for each in dis.get_instructions(code):
        if each.opname in ("STORE_DEREF", "DELETE_DEREF") and each.argval in free:
            return True
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return any(_writes(each, free & set(each.co_freevars)) for each in inner)
