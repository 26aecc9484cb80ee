"""What instructions take out of objects: a program does that in the end, which is late where it cleans up."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from types import BuiltinMethodType
from typing import Any

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.segments.called import called
from stillgraph.core.lookup import is_exactly, own_attributes
from stillgraph.core.parcel import opened
from stillgraph.trace.values.callables import contents

_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})
_CONTAINERS = (list, dict, set, collections.deque)
_TAKING_OUT = frozenset(
    {
        *("clear", "pop", "popitem", "popleft", "remove", "discard", "update", "append", "appendleft", "rotate"),
        *("extend", "extendleft", "__setitem__", "__delitem__", "__ior__", "__iand__", "__isub__", "__ixor__"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    }
)
"""Methods of containers by which something may leave these: a deque that is full loses what is at its other end."""


def dropped(frame: Frame, each: Instruction) -> Iterator[Any]:
    """What an instruction may take out of an attribute, container or variable that others share."""
    if each.name in _DROPS:
        yield from _DROPS[each.name](frame, each)
    elif each.name in _CALLS:
        method = opened(called(frame, each))
        if isinstance(method, BuiltinMethodType) and method.__name__ in _TAKING_OUT:
            yield from _elements(method.__self__)


def _elements(container: Any) -> Iterator[Any]:
    if is_exactly(container, _CONTAINERS):
        yield from container.values() if type(container) is dict else container


def _attribute(frame: Frame, each: Instruction) -> Iterator[Any]:
    yield (own_attributes(opened(frame.peek())) or {}).get(each.argument)


def _variable(frame: Frame, each: Instruction) -> Iterator[Any]:
    yield frame.globals.get(each.argument)


def _in_cell(frame: Frame, each: Instruction) -> Iterator[Any]:
    yield opened(contents(opened(contents(frame.slots[each.argument]))))


def _item(frame: Frame, each: Instruction) -> Iterator[Any]:
    return _elements(opened(frame.peek(2)))


def _slice(frame: Frame, each: Instruction) -> Iterator[Any]:
    return _elements(opened(frame.peek(3)))


_DROPS: dict[str, Callable[[Frame, Instruction], Iterator[Any]]] = {
    "STORE_ATTR": _attribute,
    "DELETE_ATTR": _attribute,
    "STORE_SUBSCR": _item,
    "DELETE_SUBSCR": _item,
    "STORE_SLICE": _slice,
    "STORE_GLOBAL": _variable,
    "DELETE_GLOBAL": _variable,
    "STORE_DEREF": _in_cell,
    "DELETE_DEREF": _in_cell,
}
