"""What has to live as long as Python's own variables: objects of which somebody can tell when they are gone."""

from __future__ import annotations

import enum
import functools
import itertools
import sys
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable, Iterator
from types import BuiltinMethodType, CellType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.core.files import is_dependency
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.core.lookup import class_member, is_exactly, own_attributes
from stillgraph.core.parcel import Parcel
from stillgraph.operators.control_flow.closing import is_followed, may_wait_in_a_block, waits_in_a_block
from stillgraph.program.sources import Argument
from stillgraph.trace.capture.session import Session, session

_PLAIN = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, range, slice, type, ModuleType, FunctionType),
        *(torch.Tensor, torch.nn.Parameter, torch.Size, torch.dtype, torch.device, torch.layout),
    }
)
"""Of these nobody can tell, or they are found elsewhere: a function, a module."""

_NEVER = (torch.Tensor, torch.nn.Module, type, ModuleType, enum.Enum)
_DRAWING: tuple[Any, ...] = (
    *(enumerate, zip, map, filter),
    *(each for each in vars(itertools).values() if isinstance(each, type)),
)
_ENDING: tuple[Any, ...] = (Generator, Coroutine, AsyncGenerator, *_DRAWING)  # the last may hold one of the first


def is_missed(value: Any, referred: frozenset[int] = frozenset()) -> bool:
    """Whether somebody may tell that what a variable holds is gone, though the code does not read it any more.

    Args:
        value: what a variable holds.
        referred: the ids of objects to which the code holds weak references.
    """
    if is_exactly(value, _PLAIN) and not referred:
        return False
    return _is_missed(value, referred, session(), set())


def referred_to(values: Iterable[Any]) -> frozenset[int]:
    """The ids of the objects that some of these are weak references to."""
    opened = (value.value if type(value) is Parcel else value for value in values)
    found = (value() for value in opened if isinstance(value, weakref.ref))
    return frozenset(id(value) for value in found if value is not None)


def held_by(values: Iterable[Any]) -> frozenset[int]:
    """The ids of objects of the user's classes that some values are or hold, and those of what holds them."""
    found: dict[int, Any] = {}
    queue = list(values)
    while queue:
        value = queue.pop()
        if is_exactly(value, _PLAIN) or isinstance(value, (*_NEVER, Parcel)) or id(value) in found:
            continue
        found[id(value)] = value
        queue += _inside(value)
    return frozenset(key for key, value in found.items() if is_of_users(type(value)))


def _is_missed(value: Any, referred: frozenset[int], capture: Session | None, seen: set[int]) -> bool:
    if type(value) is Parcel:
        value, capture = value.value, None
        if isinstance(value, torch.Tensor):
            return True  # it has been kept so far
    if id(value) in referred:
        return True
    if is_exactly(value, _PLAIN) or isinstance(value, _NEVER) or id(value) in seen:
        return False
    seen.add(id(value))
    return _is_kept(value, capture) or any(_is_missed(each, referred, capture, seen) for each in _inside(value))


def _is_kept(value: Any, capture: Session | None) -> bool:
    """Whether it is itself one of those; of what a capture has made, nobody can tell."""
    kind = type(value)
    if capture is None:
        return is_of_users(kind) or is_told(value)
    if not is_of_users(kind) and not is_told(value):
        return False
    if isinstance(value, (Generator, *_DRAWING)) and waits_in_a_block(value):
        return True
    source = capture.finder.find(value)
    return source is not None and not isinstance(source, Argument)  # those the caller holds


def is_told(value: Any) -> bool:
    """Whether anything is done when an object is gone, or is known of it: a file is closed, a generator ended."""
    kind = type(value)
    if isinstance(value, _ENDING) or class_member(kind, "__del__") is not None:
        return True
    if isinstance(value, weakref.ref):
        return value.__callback__ is not None  # which is called as long as the reference is there itself
    return not is_of_users(kind) and weakref.getweakrefcount(value) > 0


def may_end_unseen(value: Any) -> bool:
    """Whether an iterator of Python's own draws from a generator that may have something to clean up, or is one.

    Python closes that when it lets go of the iterator, which nobody is told of.
    """
    drawing = isinstance(value, _DRAWING) or (isinstance(value, GeneratorType) and not is_followed(value))
    return drawing and may_wait_in_a_block(value)


def ends_with_it(value: Any) -> bool:
    """Whether something is done when an object is gone."""
    value = value.value if type(value) is Parcel else value
    kind = type(value)
    if kind in _PLAIN or isinstance(value, _NEVER):
        return False
    if isinstance(value, _ENDING) or class_member(kind, "__del__") is not None:
        return True
    if any(reference.__callback__ is not None for reference in weakref.getweakrefs(value)):
        return True
    return cleans_up(value)


def cleans_up(value: Any) -> bool:
    """Whether it is, or holds, an iterator over a generator that may have something to clean up when that is gone."""
    if is_exactly(value, _PLAIN) or isinstance(value, _NEVER):
        return False
    return any(isinstance(each, _ENDING) and may_wait_in_a_block(each) for each in (value, *_all_inside(value)))


def _all_inside(value: Any) -> Iterator[Any]:
    """What an object holds, and what that does: so much of it as can be looked at in a moment."""
    seen: set[int] = set()
    waiting = deque(_inside(value))
    while waiting and len(seen) < _MOST:
        each = waiting.popleft()
        if is_exactly(each, _PLAIN) or isinstance(each, _NEVER) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += _inside(each)


_MOST = 1000


@weakly_cached
def is_of_users(kind: type) -> bool:
    """Whether a class is one of the user's own."""
    module = str(kind.__module__)
    if not kind.__flags__ & _HEAP or module.partition(".")[0] in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return not isinstance(file, str) or not is_dependency(file)


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a ``class`` statement


_CONTAINERS: tuple[Any, ...] = (list, tuple, dict, set, frozenset, deque)


def _inside(value: Any) -> Iterator[Any]:
    """What an object holds, as far as it may be what keeps that alive."""
    kind = next((each for each in _CONTAINERS if issubclass(type(value), each)), None)
    if kind is dict:  # past what a class of the user's makes of these methods
        yield from dict.values(value)
        yield from dict.keys(value)
    elif kind is not None:
        yield from kind.__iter__(value)
    elif isinstance(value, (MethodType, BuiltinMethodType)):
        yield value.__self__
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, CellType):
        try:
            yield value.cell_contents
        except ValueError:
            return
    elif isinstance(value, Iteration):
        yield value.values
    elif is_of_users(type(value)):
        yield from (own_attributes(value) or {}).values()


class Watching(weakref.ref[Any]):
    """Stands for an object that an instruction has given, and that nothing of ours is to hold."""


def while_there_is(value: Any, made: dict[int, Any]) -> Any:
    """What stands for an object that an instruction has given: itself, unless something is done when it is gone."""
    if not isinstance(value, Iterator) or not type(value).__weakrefoffset__:
        return value
    number = id(value)

    def gone(_: Any) -> None:
        made.pop(number, None)

    return Watching(value, gone)
