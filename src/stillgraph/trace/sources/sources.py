"""Finding objects: by which path from the call's arguments, closures and globals an object is reached."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import dataclasses
import itertools
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from types import (
    CodeType,
    FunctionType,
    ModuleType,
)
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_library, is_standard_library, is_torch
from stillgraph.core.lookup import behind_proxy, is_proxy, own_attributes, slots
from stillgraph.core.parcel import Parcel
from stillgraph.program.sources import (
    Argument,
    Attribute,
    Called,
    Cell,
    Element,
    Held,
    Item,
    Source,
    Upcoming,
)
from stillgraph.trace.code.members import Members
from stillgraph.trace.code.names import names_of
from stillgraph.trace.code.namespaces import file_of, module_attributes, module_member, variable
from stillgraph.trace.code.thread_objects import is_for_threads
from stillgraph.trace.sources import children
from stillgraph.trace.sources.children import of_instance
from stillgraph.trace.sources.kinds_of_objects import (
    ATOMS,
    STEPS,
    is_alive,
    is_anew,
    is_machinery,
    is_opened_by_name,
    is_unbound,
    steps_of,
)
from stillgraph.trace.sources.memory import Memory
from stillgraph.trace.sources.reads import variable_value

_LIMIT = 3_000_000
BUILT_IN = frozenset({list, tuple, dict, set, frozenset})
"""The exact types of what holds others and has no attributes of its own, as most objects in a long list of rows."""
_LEADING = BUILT_IN | {torch.Tensor, torch.nn.Parameter}

_OPAQUE = frozenset({str, int, float, complex, bytes, bool, type(None), type(os.environ)})
"""The exact types of what leads nowhere; the environment's variables are guarded one by one."""


class Finder:
    """Walks what the call can reach, breadth first.

    What is found later than it could first have been written would be taken for what was there before the capture. So a
    function that the capture comes upon is walked from to the end before it runs.

    Args:
        args: the call's positional arguments, the receiver of a method first.
        kwargs: its keyword arguments.
        names: of the parameters.
        memory: told of what is found.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        names: dict[int | str, str] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.memory = memory or Memory()
        self.names = names or {}  # of the parameters, for naming inputs
        self._found: dict[int, tuple[Any, Source]] = {}
        self.again: list[tuple[Any, Source]] = []  # tensors, modules and containers found before, by another path
        self._copies: set[int] = set()  # what stands in `_found` for something else
        self.twice: set[int] = set()  # the ids of what was found by several paths
        self.modules: dict[int, ModuleType] = {}  # Python's, not torch's
        self._made: dict[int, tuple[Any, Source]] = {}
        self._originals: dict[int, Any] = {}  # by the id of what stands for a tuple: the tuple
        self._queue: collections.deque[tuple[Any, Source]] = collections.deque()
        self.told: Callable[[Any, Source], None] | None = None  # of what is found from now on
        self.unopened: dict[int, tuple[Any, Source]] = {}  # torch's own: what users' code names is followed
        self._named: set[str] = set()
        self._functions: set[int] = set()
        self._cells: dict[int, Cell] = {}
        self.arguments: list[tuple[Any, Source]] = [(value, Argument(position)) for position, value in enumerate(args)]
        self.arguments += [(value, Argument(name)) for name, value in kwargs.items()]
        self._members = Members()
        self._slots: dict[type, list[str]] = {}
        self._parcels = {source for value, source in self.arguments if type(value) is Parcel}
        for value, source in self.arguments:
            self._push(value, source)

    def add_function(self, function: FunctionType) -> None:
        """Walk also what a function's globals, closure and defaults name; to be called before it runs."""
        if id(function.__code__) in self._functions and not function.__closure__:
            return
        self._functions.add(id(function.__code__))
        self._push(function, Held(function.__name__, function))
        self.add_code(function.__code__, function.__globals__, function)
        self.complete()

    def add_code(self, code: CodeType, namespace: dict[str, Any], function: FunctionType | None = None) -> None:
        """Let the walk begin also at what code names of its globals, and of the modules it names."""
        names = names_of(code)
        if not is_library(code.co_filename):
            self._follow(names.attributes)
        for name in names.variables:
            if name in namespace:
                self._push(namespace[name], variable(namespace, name))
        for module, attribute in module_attributes(names, namespace, function):
            _, source, value = module_member(module, attribute)
            file = file_of(module)
            if not (is_torch(file) or is_standard_library(file)) or (module.__name__, attribute) in _LISTS:
                self._push(value, source)

    def find(self, value: Any) -> Source | None:
        """The shortest path to an object, or None if the call did not reach it before the capture."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        self.complete()
        entry = self._found.get(id(value))
        return None if entry is None else entry[1]

    def holds(self, value: Any) -> bool:
        """Whether an object, or a closure cell, was found so far, or stands for a tuple that was."""
        return id(value) in self._found or id(value) in self._made or id(value) in self._cells

    def was_there(self, value: Any) -> bool:
        """Whether an object was there before the capture, and is no copy that stands for one.

        Raises:
            CaptureError: there are too many objects to go through.
        """
        self.complete()
        return id(value) in self._found and id(value) not in self._copies

    def find_owner(self, value: Any) -> Source | None:
        """As `find`, also for a class that was there before the capture."""
        if isinstance(value, type):
            known = id(value) in self._found or "<locals>" not in value.__qualname__
            return Held(value.__name__, value) if known else None
        return self.find(value)

    def add_root(self, target: Any) -> None:
        """Let the walk begin also at a callable object that the program will hold."""
        self._push(target, Held(type(target).__name__, target))

    def add(self, value: Any, source: Source) -> None:
        """Let the walk begin also at what is found at a source."""
        self._push(value, source)

    def alias(self, value: Any, source: Source) -> None:
        """Let ``value`` stand for what is found at ``source``: the copy of an argument that holds fake tensors."""
        self._found[id(value)] = (value, source)
        self._copies.add(id(value))
        if self.told is not None and not isinstance(value, torch.Tensor):
            self.told(value, source)  # code that is not rewritten may change it

    def stand_in(self, value: Any, source: Source, original: Any) -> None:
        """Let ``value``, which the capture has made, stand for a tuple that was there before."""
        self._made[id(value)] = (value, source)
        self._originals[id(value)] = self.original(original)

    def original(self, value: Any) -> Any:
        """The tuple that another one stands for; anything else itself."""
        return self._originals.get(id(value), value)

    def value_at(self, source: Source) -> Any:
        """The object that is at a source: one that was found there, or that only an earlier capture came upon."""
        if isinstance(source, Held):
            return source.value
        found = next((value for value, known in reversed(self._found.values()) if known == source), _NOTHING)
        if found is _NOTHING and isinstance(source, Argument):  # it was passed before, and found there
            return next(value for value, known in self.arguments if known == source)
        if found is _NOTHING:
            found = children.read(source, self.value_at)
            self._push(found, source)
        return found

    def values_at(self, sources: list[Source]) -> list[Any]:
        """As `value_at`, of many."""
        wanted = dict.fromkeys(sources, _NOTHING)
        wanted.update((known, value) for value, known in self._found.values() if known in wanted)
        return [self.value_at(s) if wanted[s] is _NOTHING else wanted[s] for s in sources]

    def is_passed(self, source: Source) -> bool:
        """Whether a path begins in a parcel, or at an item of an iterator: each call may find another object there."""
        while not isinstance(source, Argument):
            if isinstance(source, Upcoming):
                return True
            base = getattr(source, "base", None)
            if base is None:
                return False
            source = base
        return source in self._parcels

    def passed_cell(self, function: FunctionType, number: int) -> Source | None:
        """Where a cell of a function is found that each call makes anew; None where the cell is the same in all."""
        source = self.find(function)
        if source is None or not self.is_passed(source) or not is_anew(function):
            return None
        return Item(Attribute(source, "__closure__"), number)

    def cell_source(self, cell: Any) -> Source | None:
        """The source of a closure cell that was there before the capture."""
        return self._cells.get(id(cell))

    def complete(self) -> None:
        """Walk to the end: what has been found was there before anything was written.

        Raises:
            CaptureError: there are too many objects to go through.
        """
        self._empty_queue()
        while self._members.waiting:
            member, self._members.within = self._members.waiting.popleft()
            try:
                self._push(member, Held(member.__qualname__, member))
                self._empty_queue()
            finally:
                self._members.within = None

    def _empty_queue(self) -> None:
        while self._queue:
            if len(self._found) > _LIMIT:
                what = f"the call reaches more than {_LIMIT:,} objects"
                hint = "Keep large tables of Python objects in a tensor, or behind a function marked not_to_static."
                raise refuse("SG305", what, hint=hint)
            self._walk(*self._queue.popleft())

    def found_among(self, value: Any) -> list[Any]:
        """The sets by whose members alone, which are classes, an object was found; empty for all others."""
        return [self._found[container][0] for container in self._members.by.get(id(value), ())]

    def reached_since(self, count: int) -> list[Any]:
        """All objects reached so far but the first ``count``."""
        if count == len(self._found):
            return []
        return [value for value, _ in itertools.islice(self._found.values(), count, None)]

    def everything(self) -> Iterator[tuple[Any, Source]]:
        """All objects reached so far, with their paths."""
        return iter([found for key, found in self._found.items() if key not in self._copies])

    def forget(self) -> None:
        """Let go of the user's objects: a capture that has ended lives until Python looks for cycles."""
        self.told = None
        self._members.clear()
        held: Any
        made = (self._made, self._originals)
        for held in (self._found, *made, self.again, self.arguments, self.modules, self._cells, self.unopened):
            held.clear()

    def _follow(self, names: frozenset[str]) -> None:
        """Follow some more of the attributes of objects of torch's."""
        new = names - self._named
        self._named |= new
        for value, source in list(self.unopened.values()) if new else ():
            self._push_named(value, source, new)

    def _push_named(self, value: Any, source: Source, names: AbstractSet[str]) -> None:
        state = own_attributes(value)
        for name in sorted(names & state.keys()):
            self._push(state[name], of_instance(value, source, name))

    def _push(self, value: Any, source: Source) -> None:
        if type(value) in _OPAQUE or (id(value) not in self._found and not self._leads_on(value, source)):
            return
        if isinstance(value, type):
            source = Held(value.__qualname__, value)
        if id(value) not in self._found:
            self._found[id(value)] = (value, source)
            self._queue.append((value, source))
            self._members.found(id(value))
            if type(value) not in _LEADING:
                self.memory.note(value, source)
            if self.told is not None:
                self.told(value, source)
            return
        if self._members.found_again(id(value)):
            self._queue.append(self._found[id(value)])
        if not isinstance(source, Held) and self._found[id(value)][1] != source:
            self.twice.add(id(value))
        if isinstance(value, _ALIASED) or dataclasses.is_dataclass(value):
            self.again.append((value, source))

    def _leads_on(self, value: Any, source: Source) -> bool:
        """Whether anything is found by way of what is found here for the first time."""
        if type(value) in _LEADING:
            return True
        if is_proxy(value):
            return is_alive(value)
        if isinstance(value, ModuleType):
            self.modules[id(value)] = value
        if id(value) not in self.unopened and is_opened_by_name(value):
            self.unopened[id(value)] = (value, source)
            self._push_named(value, source, self._named)
        kind = type(value)
        return not (isinstance(value, ATOMS) or is_unbound(value) or is_machinery(kind) or is_for_threads(kind))

    def _push_cells(self, function: FunctionType, source: Source) -> None:
        if is_anew(function) and self.is_passed(source):
            for number, cell in enumerate(function.__closure__ or ()):
                self._push(cell, Item(Attribute(source, "__closure__"), number))
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._cells.setdefault(id(cell), Cell(name, cell))
            try:
                self._push(cell.cell_contents, Cell(name, cell))
            except ValueError:
                continue

    def _walk(self, value: Any, source: Source) -> None:
        kind = type(value)
        if kind in BUILT_IN and id(kind) in self._found:
            self._walk_elements(value, source)
            return
        if isinstance(value, type):
            self._push_all(children.of_class(value))
            if type(value) is not type:
                self._push(type(value), source)
            return
        if is_proxy(value):  # which would pass for what they stand for
            self._walk_proxy(value, source)
            return
        self._push(type(value), source)
        if isinstance(value, torch.nn.Module):
            self._push_all(children.of_module(value, source))
        elif isinstance(value, FunctionType):
            self._push_cells(value, source)
            self._push_all(children.of_function(value, source))
        elif type(value) in STEPS:
            for name, item in steps_of(value):
                self._push(item, Attribute(source, name))
        elif isinstance(value, contextvars.ContextVar):
            self._push(variable_value(value), Called(Attribute(source, "get")))
        elif isinstance(value, weakref.ref):
            self._push(value(), Called(source))
        else:
            self._walk_elements(value, source)
            if kind not in self._slots:
                self._slots[kind] = slots(kind)
            self._push_all(children.of_object(value, source, self._slots[kind]))

    def _walk_proxy(self, proxy: Any, source: Source) -> None:
        with contextlib.suppress(ReferenceError):
            self._push(behind_proxy(proxy), Attribute(Attribute(source, "__repr__"), "__self__"))

    def _push_all(self, found: Iterable[tuple[Any, Source]]) -> None:
        for value, source in found:
            self._push(value, source)

    def _walk_elements(self, value: Any, source: Source) -> None:
        if isinstance(value, (set, frozenset)):
            self._walk_set(value, source)
        else:
            self._push_all(children.elements(value, source))

    def _walk_set(self, members: AbstractSet[Any], source: Source) -> None:
        for position, member in enumerate(members):
            if not (isinstance(member, type) and self._members.put_off(member, members)):
                self._push(member, Element(source, position))


_NOTHING = object()
# Of Python's own, which programs change:
_LISTS = {("sys", "argv"), ("sys", "path"), ("warnings", "filters"), ("logging", "root")}
_ALIASED = (torch.Tensor, torch.nn.Module, list, dict, set, collections.deque)
