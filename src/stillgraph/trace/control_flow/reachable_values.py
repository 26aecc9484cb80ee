"""Where code that is handed some objects may find values: attributes, contents of containers, variables, globals."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.core.files import is_our_module, is_ours, is_torch
from stillgraph.core.lookup import own_attributes, slots
from stillgraph.trace.code.names import names_of
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.heap.places import MISSING, AttributePlace, CellPlace, ContentsPlace, GlobalPlace, Place
from stillgraph.trace.sources.kinds_of_objects import is_machinery
from stillgraph.trace.values.numbers import Staged

CONTAINERS = (list, dict, set, collections.deque)
PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType, CodeType, torch.Tensor, Staged, Unjoined)


def places_within(handed: Iterable[Any]) -> Iterator[tuple[Place, Any]]:
    """Every place that objects lead to, with what it holds; a container's place holds its elements."""
    seen: dict[int, Any] = {}
    queue = collections.deque(handed)
    while queue:
        value = queue.popleft()
        if isinstance(value, PLAIN) or id(value) in seen:
            continue
        seen[id(value)] = value
        if is_machinery(type(value)) or is_our_module(type(value).__module__):
            continue
        if isinstance(value, MethodType):
            queue += (value.__self__, value.__func__)
            continue
        if isinstance(value, (tuple, frozenset, set)):
            queue += value
        for place in held_places(value):
            held = place.get()
            if held is not MISSING:
                yield place, held
                queue += _elements(held) if isinstance(place, ContentsPlace) else (held,)


def _elements(contents: Any) -> Iterable[Any]:
    return contents.values() if isinstance(contents, dict) else contents


def held_places(value: Any) -> Iterator[Place]:
    """What an object itself holds, and where; of a function, the variables and globals that its code names."""
    if isinstance(value, FunctionType):
        if is_torch(value.__code__.co_filename) or is_ours(value.__code__.co_filename):
            return
        yield from map(CellPlace, value.__closure__ or (), value.__code__.co_freevars)
        named = names_of(value.__code__).variables
        yield from (GlobalPlace(value.__globals__, name) for name in sorted(named & value.__globals__.keys()))
        return
    if isinstance(value, CONTAINERS):
        yield ContentsPlace(value)
    names = (*(own_attributes(value) or ()), *slots(type(value)))
    if isinstance(value, torch.nn.Module):
        names += (*value._buffers, *value._modules)
    yield from (AttributePlace(value, name) for name in names)
