"""Guards on the Python world: what the captured code could have read besides its arguments."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, FunctionType
from typing import Any, cast

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.context import current_context
from stillgraph.program.guards import (
    Cell,
    ConstantGuard,
    Global,
    Guard,
    IdentityGuard,
    ModeGuard,
    SizeGuard,
    Slot,
    Source,
    TypeGuard,
)
from stillgraph.trace.frames import is_library, is_standard_library, is_torch
from stillgraph.trace.inputs import Inputs
from stillgraph.trace.recorder import Recorder

_PRIMITIVES = (int, float, str, bool, type(None), torch.dtype)


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
        if base is torch.nn.Module or base is object:
            continue
        for member in vars(base).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and function.__name__ not in ("__init__", "extra_repr", "__repr__"):
                names.update(names_read(function.__code__))
    return frozenset(names)


def module_guards(found: list[tuple[Any, Source]], inputs: set[Any]) -> list[Guard]:
    """``training``, and the plain attributes that a module's own methods mention."""
    guards: list[Guard] = []
    for module, source in found:
        if not isinstance(module, torch.nn.Module):
            continue
        guards.append(TypeGuard(source, type(module)))
        guards.append(ConstantGuard(Slot(source, "__dict__", "training"), module.training))
        names = _names_in(cast(Any, type(module)))
        for name, value in module.__dict__.items():
            read = name in names and name != "training" and isinstance(value, _PRIMITIVES)
            if read and ("attribute", id(module), name) not in inputs:
                guards.append(ConstantGuard(Slot(source, "__dict__", name), value))
    return guards


def function_guards(functions: list[FunctionType], inputs: set[Any]) -> list[Guard]:
    """Constants and functions that rewritten functions find in their globals and closures."""
    guards: dict[Source, Guard] = {}
    for function in functions:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if ("cell", id(cell)) not in inputs:
                _guard_value(guards, Cell(name, cell), _contents(cell))
        module = function.__module__ or ""
        namespace = function.__globals__
        if getattr(sys.modules.get(module), "__dict__", None) is not namespace:
            continue
        for name in names_read(function.__code__):
            if name in namespace and ("global", id(namespace), name) not in inputs:
                _guard_value(guards, Global(module, name), namespace[name])
    return list(guards.values())


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ...


def _guard_value(guards: dict[Source, Guard], source: Source, value: Any) -> None:
    if isinstance(value, _PRIMITIVES):
        guards.setdefault(source, ConstantGuard(source, value))
    elif isinstance(value, FunctionType):
        file = value.__code__.co_filename
        if not (is_torch(file) or is_standard_library(file) or is_library(file)):
            guards.setdefault(source, IdentityGuard(source, value))


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
