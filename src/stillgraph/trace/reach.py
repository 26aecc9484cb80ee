"""What Python code that the run calls as it is may look at, and what it may change: hooks, optimizers, log handlers."""

from __future__ import annotations

import collections
import dis
import functools
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from stillgraph.core.lookup import class_member
from stillgraph.trace.frames import is_ours, is_standard_library, is_torch
from stillgraph.trace.held import CONTAINERS, PLAIN, held_places
from stillgraph.trace.journal import MISSING, AttributePlace, CellPlace, ContentsPlace, GlobalPlace, Place
from stillgraph.trace.sources import is_machinery

_CALLED = frozenset({"__call__", "step", "get_lr", "forward", "setup_context", "backward", "emit", "filter", "format"})
_ANY_NAME = frozenset(
    {"getattr", "setattr", "delattr", "vars", "__dict__", "__setattr__", "locals", "globals", "eval", "exec"}
)
_CHANGING = frozenset(
    {
        *("append", "extend", "insert", "pop", "popleft", "appendleft", "extendleft", "popitem", "remove", "clear"),
        *("update", "add", "discard", "setdefault", "sort", "reverse", "rotate", "move_to_end", "subtract"),
        *("__setitem__", "__delitem__", "__iadd__", "heappush", "heappop", "heapify", "shuffle", "insort"),
        *("writerow", "write"),
    }
)
_STATE = (torch.optim.Optimizer, LRScheduler)  # torch's code looks at all that they hold


@dataclass
class Reach:
    """What some code may look at and change.

    Attributes:
        places: where it may look, by their keys, each with what it holds.
        names: that the code mentions: of attributes, variables and methods.
        assigned: the names among them that it assigns.
        mutates: whether it changes the contents of containers.
    """

    places: dict[Hashable, tuple[Place, Any]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    mutates: bool = False

    def changed(self) -> Iterator[tuple[Place, Any]]:
        """The places that the code may change."""
        for place, held in self.places.values():
            if self.mutates if isinstance(place, ContentsPlace) else self._assigns(place):
                yield place, held

    def _assigns(self, place: Any) -> bool:
        return place.name in self.assigned or not self.names.isdisjoint(_ANY_NAME - {"getattr"})


def reach_of(handed: Iterable[Any]) -> Reach:
    """Where code leads that is called as it is.

    Args:
        handed: the functions and objects that are called, and what they are given.
    """
    handed, names = list(handed), _CALLED
    while True:
        walk = _Walk(names)
        walk.run(handed)
        if walk.mentioned <= names:
            changing = bool(walk.mentioned & _CHANGING)
            return Reach(walk.places, names, frozenset(walk.assigned), walk.mutates or changing)
        names |= walk.mentioned


class _Walk:
    """One walk, which looks at attributes that have one of some names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.any_name = not names.isdisjoint(_ANY_NAME)
        self.places: dict[Hashable, tuple[Place, Any]] = {}
        self.mentioned: set[str] = set()
        self.assigned: set[str] = set()
        self.mutates = False
        self._queue: collections.deque[Any] = collections.deque()
        self._seen: dict[int, Any] = {}

    def run(self, handed: list[Any]) -> None:
        self._queue += handed
        while self._queue:
            value = self._queue.popleft()
            if id(value) in self._seen or (isinstance(value, PLAIN) and not isinstance(value, type)):
                continue
            self._seen[id(value)] = value
            self._look_at(value)

    def _look_at(self, value: Any) -> None:
        if isinstance(value, MethodType):
            self._queue += (value.__self__, value.__func__)
        elif isinstance(value, functools.partial):
            self._queue += (value.func, *value.args, *value.keywords.values())
        elif isinstance(value, BuiltinMethodType):
            self.mutates = self.mutates or value.__name__ in _CHANGING
            self._queue.append(value.__self__)
        elif isinstance(value, (property, staticmethod, classmethod)):
            self._queue += (getattr(value, name, None) for name in ("fget", "fset", "__func__"))
        elif isinstance(value, FunctionType):
            self._look_at_function(value)
        elif isinstance(value, (tuple, frozenset)):
            self._queue += value
        elif isinstance(value, type):
            self._look_at_class(value)
        elif not is_machinery(type(value)) or isinstance(value, _STATE):
            self._look_at_object(value)

    def _look_at_function(self, function: FunctionType) -> None:
        file = function.__code__.co_filename
        if is_ours(file) or is_torch(file) or is_standard_library(file):
            self._queue += [cell.cell_contents for cell in function.__closure__ or () if _holds(cell)]
            return
        self._read(function.__code__)
        self._queue += (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._add(CellPlace(cell, name))
        for name in sorted(self.names & function.__globals__.keys()):
            self._add(GlobalPlace(function.__globals__, name))

    def _read(self, code: CodeType) -> None:
        self.mentioned.update(code.co_names, code.co_freevars)
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF"):
                self.assigned.add(instruction.argval)
            self.mutates = self.mutates or name in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._read(constant)

    def _look_at_class(self, kind: type) -> None:
        if is_machinery(kind) or kind.__module__ in ("builtins", "logging", "torch"):
            return
        for name, member in list(vars(kind).items()):
            if name in self.names or (self.any_name and not hasattr(member, "__get__")):
                self._add(AttributePlace(kind, name))
        self._queue += kind.__bases__

    def _look_at_object(self, value: Any) -> None:
        everything = self.any_name or isinstance(value, (*CONTAINERS, *_STATE))
        for place in held_places(value):
            if everything or (isinstance(place, AttributePlace) and place.name in self.names):
                self._add(place)
        if type(value).__module__ not in ("builtins", "collections"):
            self._queue += [class_member(type(value), name) for name in sorted(self.names)]
            self._queue.append(type(value))

    def _add(self, place: Place) -> None:
        held = place.get()
        if held is not MISSING:
            self.places[place.key] = place, held
            contents = isinstance(place, ContentsPlace)
            self._queue += (held.values() if isinstance(held, dict) else held) if contents else (held,)


def _holds(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
