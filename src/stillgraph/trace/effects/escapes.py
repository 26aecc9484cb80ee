"""What Python code that the run calls as it is may look at, and what it may change: hooks, optimizers, log handlers."""

from __future__ import annotations

import array
import collections
import dis
import functools
import sys
import weakref
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from stillgraph.core.files import is_library, is_ours, is_standard_library, is_torch
from stillgraph.core.lookup import class_member
from stillgraph.program.facts.module_tables import MODULE_INTERNALS
from stillgraph.program.upcoming import KINDS
from stillgraph.trace.control_flow.reachable_values import CONTAINERS, PLAIN, held_places
from stillgraph.trace.heap.places import MISSING, AttributePlace, CellPlace, ContentsPlace, GlobalPlace, Place
from stillgraph.trace.sources.kinds_of_objects import is_machinery
from stillgraph.trace.values.arrays.functions import is_array

_CALLED = (
    *("__call__", "step", "get_lr", "forward", "setup_context", "backward"),
    *("emit", "handle", "filter", "format", "process", "makeRecord", "write", "flush"),
)
_NOT_BY_SYNTAX = frozenset(
    {"__init__", "__new__", "__init_subclass__", "__set_name__", "__del__", "__repr__", "__reduce__", "__getstate__"}
)
_ANY_NAME = frozenset(
    {
        *("getattr", "setattr", "delattr", "vars", "__dict__", "__setattr__", "locals", "globals", "eval", "exec"),
        "attrgetter",
    }
)
_READING = frozenset({"getattr", "attrgetter"})
_CHANGING = frozenset(
    {
        *("append", "extend", "insert", "pop", "popleft", "appendleft", "extendleft", "popitem", "remove", "clear"),
        *("update", "add", "discard", "setdefault", "sort", "reverse", "rotate", "move_to_end", "subtract"),
        *("__setitem__", "__delitem__", "__iadd__", "heappush", "heappop", "heapify", "shuffle", "insort"),
        *("writerow", "write"),
    }
)
_ASSIGNS = frozenset(
    {
        *("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF"),
        *("DELETE_ATTR", "DELETE_GLOBAL", "DELETE_DEREF"),
    }
)
_MUTATES = frozenset({"STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"})
_STATE = (torch.optim.Optimizer, LRScheduler)  # torch's code looks at all that they hold


@dataclass
class Reach:
    """What some code may look at and change.

    Attributes:
        places: where it may look, by their keys.
        memory: arrays and buffers that it comes by.
        iterators: those of Python's own, likewise.
        names: that the code mentions: of attributes, variables and methods.
        assigned: the names among them that it assigns.
        mutates: whether it changes the contents of containers.
    """

    places: dict[Hashable, Place] = field(default_factory=dict)
    memory: list[Any] = field(default_factory=list)
    iterators: list[Any] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    mutates: bool = False

    def changed(self) -> Iterator[Place]:
        """The places that the code may change."""
        for place in self.places.values():
            if self.mutates if isinstance(place, ContentsPlace) else self._assigns(place):
                yield place

    def _assigns(self, place: Any) -> bool:
        if place.name in self.assigned:
            return True
        if not isinstance(place, AttributePlace):
            return isinstance(place, GlobalPlace) and not self.names.isdisjoint({"globals", "exec", "eval"})
        internal = place.name.startswith("__") or place.name in MODULE_INTERNALS
        internal = internal or isinstance(place.get(), torch.nn.Module)
        return not internal and not self.names.isdisjoint(_ANY_NAME - _READING)


def reach_of(handed: Iterable[Any]) -> Reach:
    """Where code leads that is called as it is.

    Args:
        handed: the functions and objects that are called, and what they are given.
    """
    handed, names = list(handed), frozenset[str]()
    called = [each for value in handed for each in (value if type(value) is tuple else (value,))]
    methods = [class_member(value if isinstance(value, type) else type(value), n) for value in called for n in _CALLED]
    while True:
        walk = _Walk(names)
        walk.run([*handed, *methods])
        if walk.mentioned <= names:
            mutates = walk.mutates or bool(walk.mentioned & _CHANGING)
            if walk.mentioned & {"train", "eval"}:
                walk.assigned.add("training")
            return Reach(walk.places, walk.memory, walk.iterators, names, frozenset(walk.assigned), mutates)
        names |= walk.mentioned


class _Walk:
    """One walk, which looks at attributes that have one of some names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.any_name = not names.isdisjoint(_ANY_NAME)
        self.places: dict[Hashable, Place] = {}
        self.memory: list[Any] = []
        self.iterators: list[Any] = []
        self.mentioned: set[str] = set()
        self.assigned: set[str] = set()
        self.mutates = False
        self._queue: collections.deque[Any] = collections.deque()
        self._seen: dict[int, Any] = {}

    def run(self, handed: list[Any]) -> None:
        self._queue += handed
        while self._queue:
            value = self._queue.popleft()
            if id(value) in self._seen or (isinstance(value, PLAIN) and not isinstance(value, (type, ModuleType))):
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
        elif isinstance(value, weakref.ref):
            self._queue.append(value())
        elif isinstance(value, (array.array, bytearray)) or is_array(value):
            self.memory.append(value)
        elif type(value) in KINDS:
            self.iterators.append(value)
        elif isinstance(value, ModuleType):
            self._look_at_module(value)
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
        self._look_at_names(function.__globals__)

    def _look_at_names(self, namespace: dict[str, Any]) -> None:
        for name in sorted(self.names & namespace.keys()):
            self._add(GlobalPlace(namespace, name))

    def _look_at_module(self, module: ModuleType) -> None:
        file = str(getattr(module, "__file__", None) or "")
        known = module.__name__.partition(".")[0] in sys.stdlib_module_names
        if not (known or is_ours(file) or is_torch(file) or is_library(file)):
            self._look_at_names(vars(module))

    def _read(self, code: CodeType) -> None:
        self.mentioned.update(code.co_names, code.co_freevars)
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in _ASSIGNS:
                self.assigned.add(instruction.argval)
            elif name == "IMPORT_NAME":
                self._queue.append(sys.modules.get(instruction.argval))
            in_place = name == "BINARY_OP" and instruction.argrepr.endswith("=")
            self.mutates = self.mutates or in_place or name in _MUTATES
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._read(constant)

    def _look_at_class(self, kind: type) -> None:
        if is_machinery(kind) or kind.__module__ in ("builtins", "logging", "torch"):
            return
        for name, member in list(vars(kind).items()):
            by_syntax = name.startswith("__") and isinstance(member, FunctionType) and name not in _NOT_BY_SYNTAX
            if name in self.names or by_syntax or (self.any_name and not hasattr(member, "__get__")):
                self._add(AttributePlace(kind, name))
        self._queue += kind.__bases__

    def _look_at_object(self, value: Any) -> None:
        if type(value) in CONTAINERS:
            self._add(ContentsPlace(value))
            return
        everything = self.any_name or isinstance(value, (*CONTAINERS, *_STATE))
        for place in held_places(value):
            if everything or (isinstance(place, AttributePlace) and place.name in self.names):
                self._add(place)
        if isinstance(value, torch.nn.Module):
            self._queue += value._modules.values()  # whatever the way by which code comes to them
        if type(value).__module__ not in ("builtins", "collections"):
            self._queue += [class_member(type(value), name) for name in sorted(self.names)]
            self._queue.append(type(value))

    def _add(self, place: Place) -> None:
        if isinstance(place, ContentsPlace):  # which `get` would copy
            self.places[place.key] = place
            self._queue += place.target.values() if isinstance(place.target, dict) else place.target
            return
        held = place.get()
        if held is not MISSING:
            self.places[place.key] = place
            self._queue.append(held)


def _holds(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
