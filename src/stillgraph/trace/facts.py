"""Guards on the Python world: what the captured code could have read besides its arguments."""

from __future__ import annotations

import collections
import dis
import enum
import functools
import itertools
import sys
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, cast

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.context import current_context
from stillgraph.program.guards import (
    Attribute,
    BytesGuard,
    Cell,
    ConstantGuard,
    Global,
    Guard,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    ModeGuard,
    SizeGuard,
    Slot,
    Source,
    TypeGuard,
)
from stillgraph.trace.arrays import is_array
from stillgraph.trace.frames import is_torch
from stillgraph.trace.inputs import Inputs
from stillgraph.trace.recorder import Recorder
from stillgraph.trace.sources import Finder

_PRIMITIVES = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_LEFT_TO_THE_RUN = ("torch.nn.parallel.", "torch.distributed.")  # wrappers, whose own state no capture reads
_LONGEST = 4096  # of the containers whose contents are guarded one by one


def mode_guard() -> ModeGuard:
    """The modes of this thread."""
    return ModeGuard(current_context(), torch.get_default_dtype(), torch.get_default_device())


@functools.lru_cache(maxsize=4096)
def names_read(code: CodeType) -> frozenset[str]:
    """The globals and attributes that a code object, or one inside it, mentions other than to store them."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname.startswith("LOAD_") and isinstance(i.argval, str)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_read(constant)
        elif isinstance(constant, str):
            names.add(constant)  # getattr(self, "name")
    return frozenset(names)


@functools.lru_cache(maxsize=4096)
def _names_in(kind: Any) -> frozenset[str]:
    """Every name that the methods of a module's class mention."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base is torch.nn.Module or base is object or base.__module__.startswith(_LEFT_TO_THE_RUN):
            continue
        for member in vars(base).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and function.__name__ not in ("__init__", "extra_repr", "__repr__"):
                names.update(names_read(function.__code__))
    return frozenset(names)


@dataclass
class WorldGuards:
    """Collects the guards on what the code of a capture could read.

    Attributes:
        finder: the objects that the call reaches.
        functions: those that were rewritten.
        inputs: keys of the places whose numbers are inputs of the program; they are not guarded.
        written: keys of the places that the program writes.
        relied: places whose old value is part of the program's effects.
    """

    finder: Finder
    functions: list[FunctionType]
    inputs: set[Any]
    relied: set[tuple[int, str]]
    written: set[Any]
    guards: dict[Any, Guard] = field(default_factory=dict)

    def collect(self) -> list[Guard]:
        """All guards, each once."""
        names = {name for function in self.functions for name in names_read(function.__code__)}
        found = list(self.finder.everything())
        for value, _ in found:
            if isinstance(value, torch.nn.Module):
                names |= _names_in(cast(Any, type(value)))
        for function in self.functions:
            self._function(function)
        for value, source in found:
            if isinstance(value, torch.nn.Module):
                self._module(value, source)
            elif self._was_read(source, names):
                self._object(value, source, names)
        return list(self.guards.values())

    def _was_read(self, source: Source, names: set[str]) -> bool:
        """Whether every step of a path is named in the code."""
        while isinstance(source, (Attribute, Slot, Item)):
            if not isinstance(source, Item) and source.name not in names and not source.name.startswith("__"):
                return False
            source = source.base
        return True

    # ---- modules
    def _module(self, module: torch.nn.Module, source: Source) -> None:
        self._add(TypeGuard(source, type(module)))
        self._add(ConstantGuard(Slot(source, "__dict__", "training"), module.training))
        for hooks in ("_forward_hooks", "_forward_pre_hooks"):
            self._add(LengthGuard(Slot(source, "__dict__", hooks), len(getattr(module, hooks))))
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)):
            self._add(KeysGuard(Slot(source, "__dict__", "_modules"), tuple(module._modules)))
        names = _names_in(cast(Any, type(module)))
        for name, value in module.__dict__.items():
            relied = (id(module), name) in self.relied
            if (name in names or relied) and name != "training" and ("attribute", id(module), name) not in self.inputs:
                self._value(Slot(source, "__dict__", name), value, ("attribute", id(module), name))
        for table in ("_parameters", "_buffers"):
            for name, value in module.__dict__[table].items():
                if value is None and name in names:
                    self._add(ConstantGuard(Slot(source, table, name), None))
        self._class_attributes(module, source, names)

    def _class_attributes(self, value: Any, source: Source, names: frozenset[str] | set[str]) -> None:
        for base in type(value).__mro__:
            if is_torch(getattr(sys.modules.get(base.__module__), "__file__", None) or "") or base is object:
                continue
            for name, constant in vars(base).items():
                if name in names and isinstance(constant, _PRIMITIVES) and not name.startswith("__"):
                    self._value(Attribute(source, name), getattr(value, name))

    # ---- functions
    def _function(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if ("cell", id(cell)) not in self.inputs:
                self._value(Cell(name, cell), _contents(cell))
        module = function.__module__ or ""
        namespace = function.__globals__
        if getattr(sys.modules.get(module), "__dict__", None) is not namespace:
            return
        for name in names_read(function.__code__):
            if name in namespace and ("global", id(namespace), name) not in self.inputs:
                self._value(Global(module, name), namespace[name])

    # ---- objects and containers
    def _object(self, value: Any, source: Source, names: set[str]) -> None:
        if isinstance(value, dict):
            if len(value) <= _LONGEST:
                self._add(KeysGuard(source, tuple(value)))
                for key, item in value.items():
                    self._value(Item(source, key), item)
        elif isinstance(value, (set, frozenset)):
            if len(value) <= _LONGEST and all(isinstance(item, _PRIMITIVES) for item in value):
                self._add(ConstantGuard(source, type(value)(value)))
        elif isinstance(value, (list, tuple, collections.deque)):
            if len(value) <= _LONGEST:
                self._add(LengthGuard(source, len(value)))
                for index, item in enumerate(value):
                    self._value(Item(source, index), item)
        elif not isinstance(value, (torch.Tensor, FunctionType, functools.partial)):
            state = getattr(value, "__dict__", None)
            if not isinstance(state, dict):
                return
            for name, item in state.items():
                read = name in names or (id(value), name) in self.relied
                if read and ("attribute", id(value), name) not in self.inputs:
                    self._value(Attribute(source, name), item, ("attribute", id(value), name))
            self._class_attributes(value, source, names)

    def _value(self, source: Source, value: Any, key: Any = None) -> None:
        if isinstance(value, _PRIMITIVES) and not isinstance(value, enum.Enum):
            self._add(ConstantGuard(source, value))
        elif key not in self.written and not isinstance(value, (*_CONTAINERS, torch.Tensor, torch.nn.Module)):
            self._add(IdentityGuard(source, value))
            if is_array(value):
                self._add(BytesGuard(source, value.tobytes()))

    def _add(self, guard: Any) -> None:
        self.guards.setdefault((type(guard), guard.source), guard)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ...


def compares_objects(function: FunctionType) -> bool:
    """Whether a function compares with ``is``, other than with a constant."""
    return _compares_objects(function.__code__)


@functools.lru_cache(maxsize=4096)
def _compares_objects(code: CodeType) -> bool:
    instructions = list(dis.get_instructions(code))
    if any(_compares_objects(inner) for inner in code.co_consts if isinstance(inner, CodeType)):
        return True
    return any(
        after.opname == "IS_OP" and not before.opname.startswith("LOAD_CONST")
        for before, after in itertools.pairwise(instructions)
    )


def size_guards(recorder: Recorder, inputs: Inputs) -> list[Guard]:
    """What torch's own code relied on about symbolic sizes.

    Raises:
        CaptureError: a dimension declared symbolic had to be one number.
    """
    env = recorder.symbolic.shape_env
    for symbol, value in env.replacements.items():
        if value.is_number and str(symbol) in inputs.symbols:
            source, dim = inputs.symbols[str(symbol)]
            raise refuse("SG303", f"dimension {dim} of {source} was declared symbolic, but only {value} is possible")
    guards: list[Guard] = []
    for guard in env.guards:
        names = sorted(str(s) for s in guard.expr.free_symbols)
        if names and all(name in inputs.symbols for name in names):
            sizes = tuple((name, *inputs.symbols[name]) for name in names)
            guards.append(SizeGuard(recorder.symbolic.python_text(guard.expr), sizes))
    return guards
