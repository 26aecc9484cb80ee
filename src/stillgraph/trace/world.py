"""Guards on the Python world: what the code of a capture could have read of the objects that the call reaches."""

from __future__ import annotations

import array
import collections
import contextvars
import copy
import enum
import functools
import gc
import inspect
import io
import itertools
import operator
import os
import sys
import types
import weakref
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, cast

import torch

from stillgraph.program.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    Attribute,
    BytesGuard,
    Called,
    Cell,
    ConstantGuard,
    ContentsGuard,
    Element,
    EnvironmentGuard,
    FunctionGuard,
    Guard,
    Held,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    NoAttributeGuard,
    ReadingGuard,
    Slot,
    Source,
    TypeGuard,
)
from stillgraph.program.module_tables import HOOK_TABLES, MODULE_TABLES
from stillgraph.program.values import is_value
from stillgraph.trace.arrays import is_array
from stillgraph.trace.buffers import BUFFERS, READING, buffer_refused, require_plain_array
from stillgraph.trace.environment import Environment
from stillgraph.trace.frames import is_below_torch, is_library, is_ours, is_standard_library
from stillgraph.trace.modules import global_hooks
from stillgraph.trace.names import Names, names_in_getter, names_in_torch, names_of
from stillgraph.trace.namespaces import (
    attributes_below,
    cell_contents,
    class_attributes,
    class_space,
    classes_read,
    file_of,
    is_kept,
    is_users,
    module_attributes,
    module_member,
    namespace_of,
    protocol_names,
    users_classes,
    variable,
)
from stillgraph.trace.sources import STEPS, Finder, is_machinery, slots
from stillgraph.trace.torch_settings import backend_settings

_PRIMITIVES = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None)})
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, types.MappingProxyType)
_OPAQUE = _PLAIN | {type(os.environ)}  # whose variables are guarded one by one
_IMMUTABLE = (tuple, frozenset)
_SHARED = (torch.nn.Module, list, dict, set, collections.deque, types.MappingProxyType, bytearray, array.array)
_WITHOUT_PARTS = (torch.dtype, torch.device, CodeType, type, types.ModuleType)
_FEW = 8  # contents guarded one by one, so that a miss names the one that differs


@dataclass
class Reads:
    """What a capture has read besides what its code says.

    Attributes:
        functions: those that were rewritten, as the user wrote them.
        codes: the code objects that ran, with their globals.
        attributes: pairs of an object and the name of an attribute that it was asked for by that name.
        whole: objects that went to code of which only the whole is known.
        variables: pairs of a namespace, given as a dictionary, and a name that was looked up in it.
        spaces: namespaces of which all was read.
        same: pairs of a source and what was found there, on which the program relies whatever the code mentions.
        settings: readings of what no object holds: functions, their arguments and what they gave.
        environment: what was done with environment variables.
    """

    functions: list[FunctionType] = field(default_factory=list)
    codes: dict[CodeType, dict[str, Any]] = field(default_factory=dict)
    attributes: list[tuple[Any, str]] = field(default_factory=list)
    whole: dict[int, Any] = field(default_factory=dict)
    variables: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    spaces: dict[int, dict[str, Any]] = field(default_factory=dict)
    same: list[tuple[Any, Any]] = field(default_factory=list)
    settings: list[tuple[Any, tuple[Any, ...], Any]] = field(default_factory=list)
    environment: Environment = field(default_factory=Environment)


@dataclass
class WorldGuards:
    """Collects the guards on what the code of a capture could read.

    Attributes:
        finder: the objects that the call reaches.
        reads: what was read.
        inputs: keys of the places whose numbers are inputs of the program; they are not guarded.
        relied: places whose old value is part of the program's effects.
        promoted: where numbers and lists are that are inputs of the program.
        written: keys of the places that the program writes.
        tensors: ids of the tensors whose metadata is guarded.
        compares: whether the code asks whether two objects are one.
    """

    finder: Finder
    reads: Reads
    inputs: set[Any]
    relied: set[tuple[int, str]]
    promoted: frozenset[Source]
    written: set[Any]
    tensors: AbstractSet[int]
    compares: bool
    guards: dict[Any, Guard] = field(default_factory=dict)
    members: dict[Source, dict[str, Any]] = field(default_factory=dict)
    missing: dict[Source, dict[str, None]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    asked: dict[int, dict[str, None]] = field(default_factory=dict)
    of_protocols: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()  # the attributes that the user's code mentions, libraries' apart
    listed: bool = False  # whether the code goes through what modules hold
    _reached: dict[int, tuple[Any, Source]] = field(default_factory=dict)  # by paths that the code reads
    _queue: collections.deque[tuple[Any, Source]] = field(default_factory=collections.deque)
    _compared: list[tuple[torch.Tensor, Source]] = field(default_factory=list)

    def collect(self) -> list[Guard]:
        """All guards, each once."""
        scopes = self._scopes()
        for code, (namespace, function) in scopes.items():
            if function is not None:
                self.finder.add_function(function)
            else:
                self.finder.add_code(code, namespace)
        self._asked_attributes()
        self._asked_variables()
        self.finder.complete()
        getters = (names_in_getter(value) for value, _ in self.finder.everything())
        self.names |= Names(attributes=frozenset(itertools.chain.from_iterable(getters)))
        self._modules_members()
        self._read_as_a_whole()
        found = list(self.finder.everything())
        self.names |= self._module_names(found)
        self.of_protocols = frozenset().union(*(protocol_names(value) for value, _ in found if isinstance(value, type)))
        self.names |= Names(attributes=self.of_protocols, asked=self.of_protocols)
        for value, source in self.finder.arguments:
            self._reach(value, source)
        for code, (namespace, function) in scopes.items():
            self._variables(code, namespace, function)
            if function is not None:
                self._cells(function)
        self._in_torch()
        self._global_hooks()
        for source, value in self.reads.same:
            self._value(source, value)
        self._walk()
        for value, source in self.finder.everything():
            if isinstance(value, type):
                self._class(value)
            elif id(value) not in self._reached and self._may_be_read(value, source):
                self._reach(value, source)
        self._walk()
        for function, args, value in self.reads.settings:
            self.guards[ReadingGuard, function, args] = ReadingGuard(function, args, value)
        for function, args in backend_settings(self.names.attributes):
            self.guards[ReadingGuard, function, args] = ReadingGuard(function, args, function(*args))
        for guard in self.reads.environment.guards():
            self.guards[EnvironmentGuard, guard.name] = guard
        spaces = [MembersGuard(source, tuple(names.items())) for source, names in self.members.items()]
        lacking = [MissingGuard(source, tuple(names)) for source, names in self.missing.items()]
        return [*self.guards.values(), *spaces, *lacking]

    def _asked_attributes(self) -> None:
        """What objects were asked for by a name that the code need not mention (``getattr(c, "k" + "1")``)."""
        self.names |= Names(attributes=frozenset(name for _, name in self.reads.attributes))
        for target, name in self.reads.attributes:
            self.asked.setdefault(id(target), {})[name] = None
            if isinstance(target, types.ModuleType):
                self._asked_module(target, name)

    def _asked_module(self, module: types.ModuleType, name: str) -> None:
        if not _has(module, name):
            self.missing.setdefault(namespace_of(vars(module)), {})[name] = None
            return
        _, source, value = module_member(module, name)
        self.finder.add(value, source)
        self._module_member(module, name)

    def _modules_members(self) -> None:
        """What the code mentions of users' modules that it got from anywhere, a module that a function got included."""
        done: set[tuple[int, str]] = set()
        while True:
            users = [each for each in self.finder.modules.values() if is_users(each)]
            members = [m for m in attributes_below(users, self.names.attributes) if is_users(m[0])]
            new = [(module, name) for module, name in members if (id(module), name) not in done]
            if not new:
                return
            for module, name in new:
                done.add((id(module), name))
                self._asked_module(module, name)
            self.finder.complete()

    def _read_as_a_whole(self) -> None:
        """What is in objects of which only the whole is known, and in their classes, counts as mentioned."""
        for value in self.reads.whole.values():
            kind = value if isinstance(value, type) else type(value)
            bases = [base for base in users_classes(kind) if is_users(base)]
            for base in bases:
                self._add(KeysGuard(class_space(base), tuple(vars(base))))
            tables = [getattr(value, "__dict__", None), *map(vars, bases)]
            names = {name for table in tables if isinstance(table, (dict, types.MappingProxyType)) for name in table}
            self.names |= Names(attributes=frozenset(n for n in names if isinstance(n, str) and not _is_special(n)))

    def _asked_variables(self) -> None:
        """What was looked up in namespaces that the code got as dictionaries (``globals()["k" + "1"]``)."""
        for module in (each for each in self.reads.whole.values() if isinstance(each, types.ModuleType)):
            self._add(KeysGuard(namespace_of(vars(module)), tuple(vars(module))))
        for table in self.reads.spaces.values():
            self._add(KeysGuard(namespace_of(table), tuple(table)))
        whole = [(table, name) for table in self.reads.spaces.values() for name in table if not _is_special(name)]
        for table, name in (*whole, *self.reads.variables):
            self._variable(name, table)
            if name in table:
                self.finder.add(table[name], variable(table, name))
                for module, attribute in attributes_below([table[name]], self.names.attributes):
                    self._asked_module(module, attribute)

    def _in_torch(self) -> None:
        """Methods of tensors that are written in Python, people's own among them, and the functions that layers use."""
        functions, methods = vars(torch.nn.functional), vars(torch.Tensor)
        for name in sorted(self.names.attributes & functions.keys()):
            self._variable(name, functions)
        space = class_space(torch.Tensor)
        for name in sorted(self.own & methods.keys()):
            self._member(space, Item(space, name), name, methods[name])

    def _module_names(self, found: Iterable[tuple[Any, Source]]) -> Names:
        """What torch's own layers read of themselves."""
        in_torch = (names_in_torch(cast(Any, type(value))) for value, _ in found if isinstance(value, torch.nn.Module))
        return Names(attributes=frozenset().union(*in_torch))

    def _may_be_read(self, value: Any, source: Source) -> bool:
        """Whether code may have come to an object by ways that are not followed: torch's own code, a computed name."""
        if isinstance(value, (torch.nn.Module, FunctionType)):
            return True
        return self.was_read(source) or id(value) in self.asked or id(value) in self.reads.whole

    def _scopes(self) -> dict[CodeType, tuple[dict[str, Any], FunctionType | None]]:
        """The user's and libraries' code that ran, with its globals, and where it was rewritten its function."""
        scopes: dict[CodeType, tuple[dict[str, Any], FunctionType | None]] = {}
        names = Names()
        for function in self.reads.functions:
            scopes[function.__code__] = (function.__globals__, function)
        by_itself = {getattr(callback, "__code__", None) for callback in gc.callbacks}
        for code, namespace in self.reads.codes.items():
            file = code_file(code, namespace)
            if code in by_itself or is_ours(file) or is_below_torch(file):
                continue
            if is_standard_library(file):
                names |= Names(attributes=names_of(code).attributes)
            else:
                scopes.setdefault(code, (namespace, None))
        own = functools.reduce(operator.or_, map(names_of, scopes), Names())
        users = (code for code, (space, _) in scopes.items() if not is_library(code_file(code, space)))
        self.own = functools.reduce(operator.or_, map(names_of, users), Names()).attributes
        self.listed = not _LISTING.isdisjoint(own.attributes)
        self.names = names | own
        return scopes

    def was_read(self, source: Source) -> bool:
        """Whether every step of a path is named in the code."""
        while isinstance(source, (Attribute, Slot, Item, Called, Element)):
            name = source.name if isinstance(source, (Slot, Attribute)) else None
            if isinstance(source, Item) and isinstance(source.base, Attribute) and source.base.name == "__dict__":
                name = source.key if not source.key.startswith("__") else None  # of a class
            if name is not None and not self._is_named(name):
                return False
            source = source.base
        return True

    def _is_named(self, name: str) -> bool:
        return name in self.names.attributes or name in _IMPLICIT

    # ---- the walk
    def _walk(self) -> None:
        while self._queue:
            value, source = self._queue.popleft()
            if isinstance(value, torch.nn.Module):
                self._module(value, source)
            elif isinstance(value, FunctionType):
                self._function(value, source)
            elif isinstance(value, torch.Tensor):
                for name, item in value.__dict__.items():
                    if self._reads(value, name):
                        self._attribute(value, source, name, item)
                if id(value) in self.asked:
                    self._asked(value, source)
            elif not is_machinery(type(value)):
                self._object(value, source)

    def _object(self, value: Any, source: Source) -> None:
        for name in STEPS.get(type(value), ()):
            self._reach(getattr(value, name), Attribute(source, name))
        if isinstance(value, weakref.ref):
            self._reach(value(), Called(source))
        if isinstance(value, contextvars.ContextVar):
            self._reach(value.get(None), Called(Attribute(source, "get")))
        self._contents(value, source)
        if not isinstance(value, (*_WITHOUT_STATE, *STEPS, types.ModuleType)):
            self._instance(value, source)

    def _reach(self, value: Any, source: Source) -> None:
        """An object that the code comes to; where it comes by several ways, they have to lead to one object."""
        if type(value) in _OPAQUE or isinstance(value, _WITHOUT_PARTS) or is_value(value):
            return
        if isinstance(value, _IMMUTABLE):  # Python shares constant ones as it likes
            self._object(value, source)
            return
        known = self._reached.get(id(value))
        first = known[1] if known is not None else self.finder.find(value)
        if known is None:
            self._reached[id(value)] = value, source
            self._queue.append((value, source))
        if first in (None, source) or isinstance(value, (torch.Tensor, FunctionType)):
            return
        if known is None or isinstance(value, _SHARED):
            assert first is not None
            self.guards[AliasGuard, first, source] = AliasGuard(first, source, same=True)

    def _tensor(self, tensor: torch.Tensor, source: Source, key: Any) -> None:
        if id(tensor) not in self.tensors or self.finder.find(tensor) != source:
            self._add(TypeGuard(source, type(tensor)))
        if self.compares and key not in self.written:
            for other, seen in self._compared:
                self.guards[AliasGuard, seen, source] = AliasGuard(seen, source, same=other is tensor)
            self._compared.append((tensor, source))

    # ---- functions
    def _variables(self, code: CodeType, namespace: dict[str, Any], function: FunctionType | None) -> None:
        """What the globals and builtins that a code object mentions stand for, and what it mentions of modules."""
        names = names_of(code)
        for path in names.modules:
            self._imported(path)
        if "globals" in names.variables:
            self._add(KeysGuard(namespace_of(namespace), tuple(namespace)))
        for name in names.variables:
            self._variable(name, namespace)
            if name not in namespace:
                self._builtin(name, namespace)
        for module, attribute in module_attributes(names, namespace, function):
            self._module_member(module, attribute)

    def _imported(self, path: str) -> None:
        """What an import finds, or that it finds nothing yet."""
        module = sys.modules.get(path)
        if module is None:
            self.missing.setdefault(namespace_of(cast(Any, sys.modules)), {})[path] = None
        elif is_users(module):
            self.members.setdefault(namespace_of(cast(Any, sys.modules)), {})[path] = module

    def _variable(self, name: str, namespace: dict[str, Any]) -> None:
        key = ("global", id(namespace), name)
        if name not in namespace:
            self.missing.setdefault(namespace_of(namespace), {})[name] = None
        elif key not in self.inputs:
            self._member(namespace_of(namespace), variable(namespace, name), name, namespace[name], key)

    def _module_member(self, module: types.ModuleType, name: str) -> None:
        if not self.inputs & {("attribute", id(module), name), ("global", id(vars(module)), name)}:
            space, source, value = module_member(module, name)
            self._member(space, source, name, value, ("attribute", id(module), name))

    def _builtin(self, name: str, namespace: dict[str, Any]) -> None:
        found = namespace.get("__builtins__", {})
        table = found if isinstance(found, dict) else found.__dict__
        space = namespace_of(table)
        if name in table:
            self._member(space, Item(space, name), name, table[name])
        else:
            self.missing.setdefault(space, {})[name] = None

    def _global_hooks(self) -> None:
        for name, table in global_hooks().items():
            source = Held(name, table)
            self._hooks(table, source)

    def _hooks(self, table: dict[Any, Any], source: Source) -> None:
        """Hooks of a module, or of all."""
        self._add(KeysGuard(source, (*table,)) if table else LengthGuard(source, 0))
        for key, hook in table.items():
            self._value(Item(source, key), hook)

    def _cells(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if ("cell", id(cell)) not in self.inputs:
                self._value(Cell(name, cell), cell_contents(cell))

    def _function(self, function: FunctionType, source: Source) -> None:
        code = function.__code__
        self._described(function, source)
        whole = id(function) in self.reads.whole
        if not whole and code not in self.reads.codes and all(function is not each for each in self.reads.functions):
            return
        has = (function.__defaults__ is not None, function.__kwdefaults__ is not None)
        self._add(FunctionGuard(source, code, *has))
        self._cells(function)
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self._value(Attribute(source, name), getattr(function, name))
        for name, item in function.__dict__.items():
            if self._reads(function, name):
                self._attribute(function, source, name, item)
        if id(function) in self.asked:
            self._asked(function, source)

    def _described(self, value: Any, source: Source) -> None:
        """What the code asks of the description of a function or class: its name, its text, its annotations."""
        for name in _DESCRIPTIONS & (_DESCRIPTIONS if id(value) in self.reads.whole else self.own):
            if name == "__annotations__" and isinstance(value, type) and name not in vars(value):
                continue  # asking a class for its annotations makes them
            described, where = getattr(value, name, None), Attribute(source, name)
            if isinstance(described, dict):
                self._contents(described, where)
            elif described is not None:
                self._value(where, described)
        if isinstance(value, FunctionType) and "__code__" in self.own:
            self._value(Attribute(source, "__code__"), value.__code__)

    # ---- classes
    def _class(self, kind: type) -> None:
        """What the code mentions of a class, where it is found and where it might come to be found first."""
        if users_classes(kind) and not is_below_torch(file_of(kind)):
            self._add(IdentityGuard(Attribute(Held(kind.__qualname__, kind), "__mro__"), kind.__mro__))
            self._described(kind, Held(kind.__qualname__, kind))
            if "__subclasses__" in self.own:
                self.reads.settings.append((kind.__subclasses__, (), kind.__subclasses__()))
        names = self.names.attributes - (_DESCRIPTIONS - self.own)  # libraries' classes are described for ever
        for space, base, present, missing in classes_read(kind, names, self.of_protocols):
            for name in present:
                key = ("attribute", id(base), name)
                if key not in self.inputs:
                    self._member(space, Item(space, name), name, vars(base)[name], key)
            if missing:
                self.missing.setdefault(space, {}).update(dict.fromkeys(missing))

    # ---- modules
    def _module(self, module: torch.nn.Module, source: Source) -> None:
        self._add(TypeGuard(source, type(module)))
        self._add(ConstantGuard(Slot(source, "__dict__", "training"), module.training))
        for hooks in HOOK_TABLES:
            self._hooks(getattr(module, hooks), Slot(source, "__dict__", hooks))
        if id(module) in self.reads.whole or "__dict__" in self.own:
            self._add(KeysGuard(Attribute(source, "__dict__"), tuple(module.__dict__)))
        for table_name in MODULE_TABLES if self.listed else ():
            self._add(KeysGuard(Slot(source, "__dict__", table_name), tuple(getattr(module, table_name))))
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)):
            self._add(KeysGuard(Slot(source, "__dict__", "_modules"), tuple(module._modules)))
        in_torch = names_in_torch(cast(Any, type(module)))
        for name, value in module.__dict__.items():
            read = name in self.names.attributes or name in in_torch or (id(module), name) in self.relied
            if read and name not in _ALWAYS_READ and ("attribute", id(module), name) not in self.inputs:
                self._value(Slot(source, "__dict__", name), value, ("attribute", id(module), name))
        for table_name in MODULE_TABLES:
            for name, value in module.__dict__[table_name].items():
                self._entry(module, Slot(source, table_name, name), value, name in self.names.attributes | in_torch)
        self._shadowed(module, source, {"forward", *in_torch})
        self._asked(module, source)

    def _entry(self, module: torch.nn.Module, source: Slot, value: Any, named: bool) -> None:
        """What a module has registered under a name; submodules may also be come to by names that are computed."""
        if isinstance(value, torch.nn.Module):
            self._reach(value, source)
        elif named:
            self._value(source, value, ("attribute", id(module), source.name))

    # ---- objects
    def _instance(self, value: Any, source: Source) -> None:
        state = getattr(value, "__dict__", None)
        if isinstance(state, dict) or slots(type(value)):
            self._add(TypeGuard(source, type(value)))
        asked = id(value) in self.reads.whole or "__dict__" in self.names.attributes
        whole = asked or not _looks_up_plainly(type(value))
        if isinstance(state, dict):
            if whole:
                self._add(KeysGuard(Attribute(source, "__dict__"), tuple(state)))
            for name, item in state.items():
                key = ("attribute", id(value), name)
                if (whole or self._reads(value, name)) and key not in self.inputs:
                    plain = _is_compared_plainly(item)
                    self._value(Slot(source, "__dict__", name) if plain else Attribute(source, name), item, key)
            self._shadowed(value, source, set())
        for name in slots(type(value)):
            if self._reads(value, name) and hasattr(value, name):
                self._attribute(value, source, name, getattr(value, name))
        self._asked(value, source)

    def _reads(self, value: Any, name: str) -> bool:
        asked = self.asked.get(id(value), ())
        return name in self.names.attributes or name in asked or (id(value), name) in self.relied

    def _attribute(self, owner: Any, source: Source, name: str, value: Any) -> None:
        key = ("attribute", id(owner), name)
        if key not in self.inputs:
            self._value(Attribute(source, name), value, key)

    def _shadowed(self, value: Any, source: Source, also: set[str]) -> None:
        """The attributes that an object has of its class stay those, as long as it has none of these names itself."""
        state = value.__dict__
        names = [name for name in class_attributes(type(value)) if name in also or name in self.names.attributes]
        given = [n for n in names if ("attribute", id(value), n) in self.inputs]
        shadowed = tuple(name for name in names if name not in state and name not in given)
        if shadowed:
            self.missing.setdefault(Attribute(source, "__dict__"), {}).update(dict.fromkeys(shadowed))

    def _asked(self, value: Any, source: Source) -> None:
        """What an object was asked for and does not have."""
        names = dict.fromkeys(sorted(self._asked_of(value))) | self.asked.get(id(value), {})
        lacking = dict.fromkeys(name for name in names if not _has(value, name))
        if not lacking:
            return
        if not isinstance(getattr(value, "__dict__", None), dict):
            for name in lacking:
                self.guards[NoAttributeGuard, source, name] = NoAttributeGuard(source, name)
            return
        tables = MODULE_TABLES if isinstance(value, torch.nn.Module) else ()
        own: list[Source] = [Attribute(source, "__dict__"), *(Slot(source, "__dict__", table) for table in tables)]
        for space in (*own, *map(class_space, users_classes(type(value)))):
            self.missing.setdefault(space, {}).update(lacking)

    def _asked_of(self, value: Any) -> frozenset[str]:
        """What code that was not rewritten may have asked an object for."""
        if not isinstance(value, torch.nn.Module):
            return self.names.asked if isinstance(getattr(value, "__dict__", None), dict) else frozenset()
        methods = (member for base in users_classes(type(value)) for member in vars(base).values())
        return self.of_protocols.union(*(names_of(m.__code__).asked for m in methods if isinstance(m, FunctionType)))

    # ---- containers
    def _contents(self, value: Any, source: Source) -> None:
        """What a container holds; nothing for anything else."""
        place = self.finder.find(value) or source
        if place in self.promoted:
            return
        if isinstance(value, (dict, types.MappingProxyType)):
            self._mapping(value, source, place)
        elif isinstance(value, (set, frozenset)):
            self._add(TypeGuard(source, type(value)))
            self._add(KeysGuard(source, tuple(value)))
            self._members(value, source)
        elif isinstance(value, BUFFERS) and not (isinstance(value, io.IOBase) and self.own.isdisjoint(READING)):
            raise buffer_refused(value, source)
        elif isinstance(value, (bytearray, array.array)):
            self._add(ContentsGuard(source, copy.copy(value)))
        elif isinstance(value, (list, tuple, collections.deque)):
            if self._is_compared(value, source, place) and _is_plain(value):
                self._add(ContentsGuard(source, value if isinstance(value, tuple) else copy.copy(value)))
                return
            self._add(TypeGuard(source, type(value)))
            self._add(LengthGuard(source, len(value)))
            self._elements(source, place, enumerate(value))

    def _mapping(self, value: Any, source: Source, place: Source) -> None:
        if self._is_compared(value, source, place) and _is_plain((*value, *value.values())):
            self._add(ContentsGuard(source, value.copy()))
            return
        self._add(TypeGuard(source, type(value)))
        self._add(KeysGuard(source, tuple(value)))
        self._members(value, source)
        self._elements(source, place, value.items())
        if isinstance(value, collections.defaultdict):
            self._value(Attribute(source, "default_factory"), value.default_factory)

    def _members(self, members: Iterable[Any], source: Source) -> None:
        """The elements of a set, or the keys of a mapping: they are known to be the same."""
        for position, member in enumerate(members):
            self._reach(member, Element(source, position))

    def _is_compared(self, value: Any, source: Source, place: Source) -> bool:
        """Whether a container is compared as a whole: it is long, and nothing in it is an input of the program."""
        defaults = isinstance(source, Attribute) and source.name == "__defaults__"
        long = len(value) > _FEW or (defaults and len(value) > 0)
        return long and not any(isinstance(p, Item) and p.base == place for p in self.promoted)

    def _elements(self, source: Source, place: Source, items: Iterable[tuple[Any, Any]]) -> None:
        for key, item in items:
            if Item(place, key) not in self.promoted:
                self._value(Item(source, key), item)

    def _member(self, space: Source, source: Source, name: str, value: Any, key: Any = None) -> None:
        """What a name of a namespace stands for."""
        if is_kept(value):
            self.members.setdefault(space, {})[name] = value
            self._reach(value, source)
        else:
            self._value(source, value, key)

    def _value(self, source: Source, value: Any, key: Any = None) -> None:
        """What the code reads at a source: it is guarded there, and gone through."""
        if is_value(value) or (isinstance(value, _PRIMITIVES) and not isinstance(value, enum.Enum)):
            self._add(ConstantGuard(source, value))
        elif isinstance(value, torch.Tensor):
            self._tensor(value, source, key)
        elif isinstance(value, (*_CONTAINERS, torch.nn.Module)):
            pass  # guarded as it is gone through
        elif key not in self.written or is_kept(value) or isinstance(value, enum.Enum) or is_array(value):
            self._add(IdentityGuard(source, value))
            if is_array(value):
                self._add(BytesGuard(source, fingerprint(require_plain_array(value, source))))
        self._reach(value, source)

    def _add(self, guard: Any) -> None:
        self.guards.setdefault((type(guard), guard.source), guard)


_IMPLICIT = frozenset(  # steps that Python takes by itself
    {
        "func",
        "args",
        "keywords",
        "fget",
        "mapping",
        "__self__",
        "__func__",
        "__wrapped__",
        "__defaults__",
        "__kwdefaults__",
        "__dict__",
    }
)
_DESCRIPTIONS = frozenset({"__name__", "__qualname__", "__module__", "__doc__", "__annotations__"})
_ALWAYS_READ = frozenset({"training", *HOOK_TABLES, *MODULE_TABLES})
_LISTING = frozenset(  # what goes through all of a module's tensors or submodules
    {"parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"}
    | {"named_modules", "state_dict", "apply", "__dict__", *MODULE_TABLES}
)
_WITHOUT_STATE = (torch.Tensor, functools.partial, type, weakref.ref)


def code_file(code: CodeType, namespace: dict[str, Any]) -> str:
    """Where code is from; generated code (a dataclass's ``__init__``) is from its module, if that has a file."""
    if not code.co_filename.startswith("<string>"):
        return code.co_filename
    return str(namespace.get("__file__", code.co_filename))


def _is_compared_plainly(value: Any) -> bool:
    """Whether a guard on an attribute's value says all: reading it past the class is quicker, and as good."""
    return type(value) in _PLAIN or isinstance(value, (torch.dtype, torch.device))


def _is_plain(items: Iterable[Any]) -> bool:
    return all(type(item) in _PLAIN for item in items)


def _looks_up_plainly(kind: type) -> bool:
    """Whether an attribute of an object of a class is looked up in its dictionary and its class alone."""
    plain = getattr(kind, "__getattr__", None) in (None, vars(torch.nn.Module)["__getattr__"])
    return plain and _found_in(kind, "__getattribute__") is object and kind.__dictoffset__ != 0


def _found_in(kind: type, name: str) -> type:
    """The class that an attribute of a class is found in."""
    return next(base for base in kind.__mro__ if name in vars(base))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute; a getter of the user's is there, whatever it does, and is not called."""
    try:
        return isinstance(inspect.getattr_static(value, name, None), property) or hasattr(value, name)
    except Exception:  # of any kind, for it is the user's code
        return True
