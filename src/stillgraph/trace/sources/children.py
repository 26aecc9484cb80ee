"""Children of objects: what an object leads to by one step, and by which path."""

from __future__ import annotations

import collections
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import (
    FunctionType,
    MappingProxyType,
)
from typing import Any

import torch

from stillgraph.core.files import is_standard_library, is_torch
from stillgraph.core.lookup import class_member, exception_state, own_attributes, slot_value
from stillgraph.program.facts.module_tables import HOOK_TABLES, MODULE_INTERNALS, MODULE_TABLES
from stillgraph.program.sources import (
    Attribute,
    Called,
    Cell,
    Element,
    Global,
    Item,
    Memory,
    Slot,
    Source,
    Upcoming,
    item_of,
)
from stillgraph.program.upcoming import LookAhead
from stillgraph.trace.code.namespaces import class_space, file_of, users_classes

Found = Iterator[tuple[Any, Source]]


def elements(value: Any, source: Source) -> Found:
    """What a container of Python's holds; a set's members are left to the walk."""
    if isinstance(value, (dict, MappingProxyType)):
        yield from members(value, source)
        for key, item in list(value.items()):
            yield item, item_of(value, source, key)
        if isinstance(value, collections.defaultdict):
            yield value.default_factory, Attribute(source, "default_factory")
    elif isinstance(value, (list, tuple, collections.deque)):
        for index, item in enumerate(value):
            yield item, item_of(value, source, index)


def members(keys: Iterable[Any], source: Source) -> Found:
    """The keys of a dict."""
    for position, member in enumerate(keys):
        if type(member) is not str:  # most keys are; saves making their paths
            yield member, Element(source, position)


def of_function(function: FunctionType, source: Source) -> Found:
    """What a function has besides its closure."""
    for name in ("__defaults__", "__kwdefaults__"):
        yield getattr(function, name), Attribute(source, name)
    for name, item in function.__dict__.items():
        yield item, Attribute(source, name)


def of_class(kind: type) -> Found:
    """What a class of the user's, and those that it is derived from, have as members."""
    for base in users_classes(kind):
        file, space = file_of(base), class_space(base)
        if is_torch(file) or is_standard_library(file):
            continue
        for name, member in list(vars(base).items()):
            special = name.startswith("__") and name.endswith("__")
            if not special or isinstance(member, (FunctionType, staticmethod, classmethod)):
                yield member, Item(space, name)


def of_module(module: torch.nn.Module, source: Source) -> Found:
    """The parameters, buffers and submodules of a module, and its other attributes."""
    for table in MODULE_TABLES:
        for name, item in module.__dict__.get(table, {}).items():
            if item is not None:
                yield item, Slot(source, table, name)
    if type(module) in _WRAPPERS:
        return
    for name, item in module.__dict__.items():
        if name not in MODULE_INTERNALS or (name in HOOK_TABLES and item):
            yield item, Slot(source, "__dict__", name)


def of_object(value: Any, source: Source, slotted: Iterable[str]) -> Found:
    """The attributes of an object; ``slotted`` are those outside of its dictionary, see `slots`."""
    state = own_attributes(value)
    if isinstance(state, dict):
        for name, item in list(state.items()):
            yield item, of_instance(value, source, name)
    for name in slotted:
        yield slot_value(value, name), Attribute(source, name)
    for name, item in exception_state(value) if isinstance(value, BaseException) else ():
        yield item, Attribute(source, name)


def read(source: Source, value_at: Callable[[Source], Any]) -> Any:
    """What is at a source now, where ``value_at`` gives what the last step of its path leads on from."""
    match source:
        case Attribute(base=base, name=name):
            return getattr(value_at(base), name)
        case Slot(base=base, table="__dict__", name=name):
            return value_at(base).__dict__[name]
        case Slot(base=base, table=table, name=name):
            return value_at(base).__dict__[table][name]
        case Item(base=base):
            return source.of(value_at(base))
        case Global(module=module, name=name):
            return sys.modules[module].__dict__[name]
        case Cell(cell=cell):
            return cell.cell_contents
        case Called(base=base):
            return value_at(base)()
        case Memory(base=base):
            return Memory.of(value_at(base))
        case Element(base=base, position=position):
            return [*value_at(base)][position]
        case Upcoming(base=base, position=position):
            return LookAhead(value_at(base))[position]
    raise KeyError(source)


def of_instance(value: Any, source: Source, name: str) -> Attribute | Slot:
    """Where an object has an attribute of its own: to read one by its name may compute it, where it has it no more."""
    computed = isinstance(class_member(type(value), name), functools.cached_property)
    return Slot(source, "__dict__", name) if computed else Attribute(source, name)


# What these note about the module they wrap is no way to it: they keep lists of its parameters, which grow stale.
_WRAPPERS = (torch.nn.parallel.DistributedDataParallel,)
