"""Finding objects: by which path from the call's arguments, closures and globals an object is reached."""

from __future__ import annotations

import collections
import functools
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.program.guards import Argument, Attribute, Cell, Global, Held, Item, Slot, Source

_LIMIT = 200_000
_ATOMS = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, type, ModuleType)


class Finder:
    """Walks what the call can reach, breadth first and only as far as it has to.

    Args:
        args: the call's positional arguments, the receiver of a method first.
        kwargs: its keyword arguments.
    """

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[int | str, str] | None = None
    ) -> None:
        self.names = names or {}  # of the parameters, for naming inputs
        self._found: dict[int, tuple[Any, Source]] = {}
        self._queue: collections.deque[tuple[Any, Source]] = collections.deque()
        self._functions: set[int] = set()
        self._cells: dict[int, Cell] = {}
        for position, value in enumerate(args):
            self._push(value, Argument(position))
        for name, value in kwargs.items():
            self._push(value, Argument(name))

    def add_function(self, function: FunctionType) -> None:
        """Let the walk begin also at what a function's globals and closure name."""
        if id(function.__code__) in self._functions and not function.__closure__:
            return
        self._functions.add(id(function.__code__))
        self._push_cells(function)
        if function.__defaults__ and any(not isinstance(d, _ATOMS) for d in function.__defaults__):
            self._push(function.__defaults__, Attribute(Held(function.__name__, function), "__defaults__"))
        module = function.__module__ or ""
        namespace = function.__globals__
        if getattr(sys.modules.get(module), "__dict__", None) is namespace:
            for name in function.__code__.co_names:
                if name in namespace:
                    self._push(namespace[name], Global(module, name))

    def find(self, value: Any) -> Source | None:
        """The shortest path to an object, or None if the call did not reach it before the capture."""
        while id(value) not in self._found and self._queue and len(self._found) < _LIMIT:
            self._walk(*self._queue.popleft())
        entry = self._found.get(id(value))
        return None if entry is None else entry[1]

    def holds(self, value: Any) -> bool:
        """Whether an object, or a closure cell, was found so far."""
        return id(value) in self._found or id(value) in self._cells

    def add_root(self, target: Any) -> None:
        """Let the walk begin also at a callable object that the program will hold."""
        self._push(target, Held(type(target).__name__, target))

    def alias(self, value: Any, source: Source) -> None:
        """Let ``value`` stand for what is found at ``source``: the copy of an argument that holds fake tensors."""
        self._found[id(value)] = (value, source)

    def value_at(self, source: Source) -> Any:
        """The object that was found at a source."""
        return next(value for value, found in self._found.values() if found == source)

    def cell_source(self, cell: Any) -> Source | None:
        """The source of a closure cell that was there before the capture."""
        return self._cells.get(id(cell))

    def complete(self) -> None:
        """Walk to the end: what is found afterwards was there before anything was written."""
        while self._queue and len(self._found) < _LIMIT:
            self._walk(*self._queue.popleft())

    def everything(self) -> Iterator[tuple[Any, Source]]:
        """All objects reached so far, with their paths."""
        return iter(list(self._found.values()))

    def _push(self, value: Any, source: Source) -> None:
        if isinstance(value, _ATOMS):
            return
        if id(value) not in self._found:
            self._found[id(value)] = (value, source)
            self._queue.append((value, source))

    def _push_cells(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._cells.setdefault(id(cell), Cell(name, cell))
            try:
                self._push(cell.cell_contents, Cell(name, cell))
            except ValueError:
                continue

    def _walk(self, value: Any, source: Source) -> None:
        if isinstance(value, torch.Tensor):
            return
        if isinstance(value, torch.nn.Module):
            self._walk_module(value, source)
        elif isinstance(value, dict):
            for key, item in list(value.items()):
                self._push(item, Item(source, key))
        elif isinstance(value, (list, tuple, collections.deque)):
            for index, item in enumerate(value):
                self._push(item, Item(source, index))
        elif isinstance(value, FunctionType):
            self._push_cells(value)
        elif isinstance(value, functools.partial):
            self._push(value.func, Attribute(source, "func"))
            self._push(value.args, Attribute(source, "args"))
            self._push(value.keywords, Attribute(source, "keywords"))
        elif isinstance(value, MethodType):
            self._push(value.__self__, Attribute(source, "__self__"))
        else:
            self._walk_instance(value, source)

    def _walk_module(self, module: torch.nn.Module, source: Source) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            for name, item in module.__dict__.get(table, {}).items():
                if item is not None:
                    self._push(item, Slot(source, table, name))
        if type(module) in _WRAPPERS:
            return
        for name, item in module.__dict__.items():
            if name not in _MODULE_INTERNALS:
                self._push(item, Slot(source, "__dict__", name))

    def _walk_instance(self, value: Any, source: Source) -> None:
        state = getattr(value, "__dict__", None)
        if isinstance(state, dict):
            for name, item in list(state.items()):
                self._push(item, Attribute(source, name))


_MODULE_INTERNALS = frozenset(torch.nn.Module().__dict__)

# What these note about the module they wrap is no way to it: they keep lists of its parameters, which grow stale.
_WRAPPERS = (torch.nn.parallel.DistributedDataParallel,)
