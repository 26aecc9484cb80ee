"""What cannot leave the segment that has made it."""

from __future__ import annotations

import io
import logging
from collections import defaultdict, deque
from collections.abc import Container, ItemsView, Iterable, Iterator, KeysView, ValuesView
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import torch

from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.bytecode.machine.parcels import is_bound, is_opaque
from stillgraph.bytecode.segments.breaks import with_article
from stillgraph.bytecode.segments.whys import Why, why_of
from stillgraph.core.files import is_our_module
from stillgraph.core.lookup import own_attributes
from stillgraph.core.parcel import Parcel
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.namespaces import is_of_its_module
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.guards.allocations import is_plain_object, is_shared
from stillgraph.trace.sources.kinds_of_objects import is_machinery
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import StagedText


def stays(value: Any) -> bool:
    """Whether an object cannot leave the segment that made it."""
    if isinstance(value, FunctionType) and value.__closure__:
        return True  # others may write to its variables
    if isinstance(value, Iteration):
        return not value.can_wait
    if isinstance(value, CellType) or is_opaque(value):
        return True
    if is_bound(value):
        return is_our_module(type(value.__self__).__module__)
    if is_our_module(type(value).__module__):
        return not isinstance(value, _LEAVING)
    capture = capturing()
    return not (_is_rebuilt(value) or is_shared(value, capture.is_new))


def _is_rebuilt(value: Any) -> bool:
    capture = session()
    if capture is None or capture.is_new(type(value)):
        return False
    return isinstance(value, (list, tuple, dict, set, frozenset, deque)) or is_plain_object(value)


_LEAVING = (StagedNumber, StagedArray, StagedComplex, StagedText, Unjoined, Parcel, Iteration)


def may_be_from_before(value: Any) -> bool:
    """Whether it may be an object that Python has to get hold of: the capture knows no path to it."""
    capture = session()
    value = value.__self__ if is_bound(value) else value
    if capture is None or isinstance(value, (*_CONSTANTS, *_LEAVING)) or is_machinery(type(value)):
        return False
    return capture.elsewhere.may_be_from_before(value) and not is_of_its_module(value)


_CONSTANTS = (
    *(int, float, complex, str, bytes, tuple, type, slice, range, type(None), torch.Tensor),
    *(FunctionType, BuiltinFunctionType, MethodType, ModuleType, CodeType),
)

_KINDS = {
    StagedText: "a text",
    str: "a text",
    CellType: "a variable shared by inner functions",
    FunctionType: "a function",
    io.TextIOWrapper: "an open file",
    Iteration: "an iterator",
    **dict.fromkeys((MethodType, BuiltinMethodType, MethodWrapperType), "a method"),
}


def inside(values: Iterable[Any], made: Container[int]) -> Iterator[tuple[Any, int | None]]:
    """Values, and what is in those that the capture has made: containers, objects, methods bound to objects.

    Args:
        values: where to begin.
        made: the ids of objects of which it is known what has made them.

    Yields:
        Each, with the id of the innermost of those that hold it, itself included; None where none does.
    """
    capture = capturing()
    seen: set[int] = set()
    queue: list[tuple[Any, int | None]] = [(value, None) for value in values]
    while queue:
        value, holder = queue.pop()
        if id(value) in seen or isinstance(value, _NOT_SEARCHED) or capture.is_outer(value):
            continue
        seen.add(id(value))
        holder = id(value) if id(value) in made else holder
        yield value, holder
        queue += ((each, holder) for each in _held(value))


_NOT_SEARCHED = (torch.Tensor, ModuleType, logging.Logger)  # a logger is the process's, and what it has as well
_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, deque, dict)


def _held(value: Any) -> Iterator[Any]:
    kind = next((each for each in _CONTAINERS if isinstance(value, each)), None)
    if kind is dict:  # past what a class of the user's makes of these methods
        yield from dict.values(value)
        yield from (value.default_factory,) if isinstance(value, defaultdict) else ()
    elif kind is not None:
        yield from kind.__iter__(value)
    elif is_bound(value):
        yield from (value.__self__, getattr(value, "__func__", None))
    if not isinstance(value, type) and not is_our_module(type(value).__module__):
        yield from (own_attributes(value) or {}).values()


def attributes_of(values: Iterable[Any]) -> frozenset[int]:
    """The ids of the dictionaries of objects that leave a segment: one that is handed out itself would be another."""
    objects = (value for value in values if not isinstance(value, type) and not is_our_module(type(value).__module__))
    return frozenset(id(own) for own in map(own_attributes, objects) if own is not None)


def why_differing(value: Any, joined: bool = False) -> Why:
    """Why Python takes a value that differs from call to call: by itself, in what it holds, or in which one it is."""
    if is_bound(value) and isinstance(value.__self__, _HOLDING):
        value = value.__self__
    if isinstance(value, _DATA):
        kind = "differs"
    else:
        kind = "contents" if isinstance(value, _HOLDING) else "another"
    if joined:
        kind = "joined" if kind == "differs" else f"{kind} joined"
    return why_of(kind, kind_of(value))


_DATA = (int, float, complex, str, bytes, type(None), StagedText)
_HOLDING = (list, tuple, dict, set, frozenset, deque, slice, range, KeysView, ValuesView, ItemsView)


def kind_of(value: Any) -> str:
    """What an object is called in a reason."""
    kind = type(value)
    if isinstance(value, FunctionType) and value.__closure__:
        return "an inner function with shared variables"
    if kind in _KINDS:
        return _KINDS[kind]
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return "an iterator"
    return "an object" if is_our_module(kind.__module__) else with_article(kind.__name__)
