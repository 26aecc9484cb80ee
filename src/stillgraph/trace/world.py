"""Guards on the Python world: what the code of a capture could have read of the objects that the call reaches."""

from __future__ import annotations

import array
import collections
import copy
import enum
import functools
import gc
import operator
import types
import weakref
from collections.abc import Iterable
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
from stillgraph.trace.arrays import is_array
from stillgraph.trace.buffers import BUFFERS, buffer_refused, require_plain_array
from stillgraph.trace.environment import Environment
from stillgraph.trace.frames import is_below_torch, is_ours, is_standard_library
from stillgraph.trace.modules import global_hooks
from stillgraph.trace.names import Names, names_in_torch, names_of
from stillgraph.trace.namespaces import (
    cell_contents,
    class_attributes,
    class_space,
    classes_read,
    file_of,
    is_kept,
    module_attributes,
    module_member,
    namespace_of,
    users_classes,
    variable,
)
from stillgraph.trace.sources import Finder, slots
from stillgraph.trace.torch_settings import backend_settings

_PRIMITIVES = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None)})
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, types.MappingProxyType)
_FEW = 8  # contents guarded one by one, so that a miss names the one that differs


@dataclass
class Reads:
    """What a capture has read besides what its code says.

    Attributes:
        functions: those that were rewritten, as the user wrote them.
        codes: the code objects that ran, with their globals.
        attributes: pairs of an object and the name of an attribute that it was asked for by that name.
        whole: objects that went to code of which only the whole is known.
        settings: readings of what no object holds: functions, their arguments and what they gave.
        environment: what was done with environment variables.
    """

    functions: list[FunctionType] = field(default_factory=list)
    codes: dict[CodeType, dict[str, Any]] = field(default_factory=dict)
    attributes: list[tuple[Any, str]] = field(default_factory=list)
    whole: dict[int, Any] = field(default_factory=dict)
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
    """

    finder: Finder
    reads: Reads
    inputs: set[Any]
    relied: set[tuple[int, str]]
    promoted: frozenset[Source]
    written: set[Any]
    guards: dict[Any, Guard] = field(default_factory=dict)
    members: dict[Source, dict[str, Any]] = field(default_factory=dict)
    missing: dict[Source, dict[str, None]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    asked: dict[int, dict[str, None]] = field(default_factory=dict)
    listed: bool = False  # whether the code goes through what modules hold

    def collect(self) -> list[Guard]:
        """All guards, each once."""
        scopes = self._scopes()
        for code, (namespace, function) in scopes.items():
            if function is not None:
                self.finder.add_function(function)
            else:
                self.finder.add_code(code, namespace)
        self.finder.complete()
        for target, name in self.reads.attributes:
            self.asked.setdefault(id(target), {})[name] = None
            if isinstance(target, types.ModuleType) and not _has(target, name):
                self.missing.setdefault(namespace_of(vars(target)), {})[name] = None
        for code, (namespace, function) in scopes.items():
            self._variables(code, namespace, function)
            if function is not None:
                self._cells(function)
        found = list(self.finder.everything())
        in_torch = (names_in_torch(cast(Any, type(value))) for value, _ in found if isinstance(value, torch.nn.Module))
        self.names |= Names(attributes=frozenset().union(*in_torch))
        for value, source in found:
            self._found(value, source)
        self._same_objects()
        self._global_hooks()
        for function, args, value in self.reads.settings:
            self.guards[ReadingGuard, function, args] = ReadingGuard(function, args, value)
        for function, args in backend_settings(self.names.attributes):
            self.guards[ReadingGuard, function, args] = ReadingGuard(function, args, function(*args))
        for guard in self.reads.environment.guards():
            self.guards[EnvironmentGuard, guard.name] = guard
        spaces = [MembersGuard(source, tuple(names.items())) for source, names in self.members.items()]
        lacking = [MissingGuard(source, tuple(names)) for source, names in self.missing.items()]
        return [*self.guards.values(), *spaces, *lacking]

    def _same_objects(self) -> None:
        """Containers and modules that are read by several paths are guarded by one: the others lead to the same."""
        for value, source in self.finder.again:
            first = self.finder.find(value)
            if not isinstance(value, torch.Tensor) and first not in (None, source) and self._was_read(source):
                assert first is not None
                self.guards[AliasGuard, first, source] = AliasGuard(first, source, same=True)

    def _scopes(self) -> dict[CodeType, tuple[dict[str, Any], FunctionType | None]]:
        """The user's and libraries' code that ran, with its globals, and where it was rewritten its function."""
        scopes: dict[CodeType, tuple[dict[str, Any], FunctionType | None]] = {}
        names = Names()
        for function in self.reads.functions:
            scopes[function.__code__] = (function.__globals__, function)
        by_itself = {getattr(callback, "__code__", None) for callback in gc.callbacks}
        for code, namespace in self.reads.codes.items():
            file = _file_of(code, namespace)
            if code in by_itself or is_ours(file) or is_below_torch(file):
                continue
            if is_standard_library(file):
                names |= Names(attributes=names_of(code).attributes)
            else:
                scopes.setdefault(code, (namespace, None))
        own = functools.reduce(operator.or_, map(names_of, scopes), Names())
        self.listed = not _LISTING.isdisjoint(own.attributes)
        self.names = names | own
        return scopes

    def _was_read(self, source: Source) -> bool:
        """Whether every step of a path is named in the code."""
        while isinstance(source, (Attribute, Slot, Item, Called)):
            name = source.name if isinstance(source, (Slot, Attribute)) else None
            if isinstance(source, Item) and isinstance(source.base, Attribute) and source.base.name == "__dict__":
                name = source.key if not source.key.startswith("__") else None  # of a class
            if name is not None and not self._is_named(name):
                return False
            source = source.base
        return True

    def _is_named(self, name: str) -> bool:
        return name in self.names.attributes or name in _IMPLICIT

    def _found(self, value: Any, source: Source) -> None:
        if isinstance(value, torch.nn.Module):
            self._module(value, source)
        elif isinstance(value, FunctionType):
            self._function(value, source)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, torch.Tensor):
            for name, item in value.__dict__.items():
                if self._reads(value, name):
                    self._attribute(value, source, name, item)
        elif self._was_read(source) or id(value) in self.asked or id(value) in self.reads.whole:
            self._contents(value, source)
            if not isinstance(value, (*_WITHOUT_STATE, types.ModuleType)):
                self._instance(value, source)

    # ---- functions
    def _variables(self, code: CodeType, namespace: dict[str, Any], function: FunctionType | None) -> None:
        """What the globals and builtins that a code object mentions stand for, and what it mentions of modules."""
        names = names_of(code)
        space = namespace_of(namespace)
        for name in names.variables:
            if name in namespace:
                key = ("global", id(namespace), name)
                if key not in self.inputs:
                    self._member(space, variable(namespace, name), name, namespace[name], key)
                continue
            self.missing.setdefault(space, {})[name] = None
            self._builtin(name, namespace)
        for module, attribute in module_attributes(names, namespace, function):
            if not self.inputs & {("attribute", id(module), attribute), ("global", id(vars(module)), attribute)}:
                space, source, value = module_member(module, attribute)
                self._member(space, source, attribute, value, ("attribute", id(module), attribute))

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
            self._add(KeysGuard(source, (*table,)) if table else LengthGuard(source, 0))

    def _cells(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if ("cell", id(cell)) not in self.inputs:
                self._value(Cell(name, cell), cell_contents(cell))

    def _function(self, function: FunctionType, source: Source) -> None:
        code = function.__code__
        if code not in self.reads.codes and all(function is not each for each in self.reads.functions):
            return
        has = (function.__defaults__ is not None, function.__kwdefaults__ is not None)
        self._add(FunctionGuard(source, code, *has))
        self._cells(function)
        for name, item in function.__dict__.items():
            if self._reads(function, name):
                self._attribute(function, source, name, item)
        if id(function) in self.asked:
            self._asked(function, source)

    # ---- classes
    def _class(self, kind: type) -> None:
        """What the code mentions of a class, where it is found and where it might come to be found first."""
        if users_classes(kind) and not is_below_torch(file_of(kind)):
            self._add(IdentityGuard(Attribute(Held(kind.__qualname__, kind), "__mro__"), kind.__mro__))
        for space, base, present, missing in classes_read(kind, self.names.attributes):
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
        for hooks in _HOOKS:
            table = Slot(source, "__dict__", hooks)
            self._add(KeysGuard(table, (*getattr(module, hooks),)) if getattr(module, hooks) else LengthGuard(table, 0))
        for table_name in _TABLES if self.listed else ():
            self._add(KeysGuard(Slot(source, "__dict__", table_name), tuple(getattr(module, table_name))))
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)):
            self._add(KeysGuard(Slot(source, "__dict__", "_modules"), tuple(module._modules)))
        in_torch = names_in_torch(cast(Any, type(module)))
        for name, value in module.__dict__.items():
            read = name in self.names.attributes or name in in_torch or (id(module), name) in self.relied
            if read and name not in _ALWAYS_READ and ("attribute", id(module), name) not in self.inputs:
                self._value(Slot(source, "__dict__", name), value, ("attribute", id(module), name))
        for table_name in ("_parameters", "_buffers"):
            for name, value in module.__dict__[table_name].items():
                if value is None and (name in self.names.attributes or name in in_torch):
                    self._add(ConstantGuard(Slot(source, table_name, name), None))
        self._shadowed(module, source, {"forward", *in_torch})
        self._asked(module, source)

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
        tables = _TABLES if isinstance(value, torch.nn.Module) else ()
        own: list[Source] = [Attribute(source, "__dict__"), *(Slot(source, "__dict__", table) for table in tables)]
        for space in (*own, *map(class_space, users_classes(type(value)))):
            self.missing.setdefault(space, {}).update(lacking)

    def _asked_of(self, value: Any) -> frozenset[str]:
        """What code that was not rewritten may have asked an object for."""
        if not isinstance(value, torch.nn.Module):
            return self.names.asked if isinstance(getattr(value, "__dict__", None), dict) else frozenset()
        methods = (member for base in users_classes(type(value)) for member in vars(base).values())
        return frozenset().union(*(names_of(m.__code__).asked for m in methods if isinstance(m, FunctionType)))

    # ---- containers
    def _contents(self, value: Any, source: Source) -> None:
        if source in self.promoted:
            return
        if isinstance(value, (dict, types.MappingProxyType)):
            if self._is_compared(value, source) and _is_plain((*value, *value.values())):
                self._add(ContentsGuard(source, value.copy()))
                return
            self._add(KeysGuard(source, tuple(value)))
            self._elements(source, value.items())
            if isinstance(value, collections.defaultdict):
                self._value(Attribute(source, "default_factory"), value.default_factory)
        elif isinstance(value, (set, frozenset)):
            if _is_plain(value):
                self._add(ContentsGuard(source, copy.copy(value)))
            else:
                self._add(KeysGuard(source, tuple(value)))
        elif isinstance(value, BUFFERS):
            raise buffer_refused(value, source)
        elif isinstance(value, (bytearray, array.array)):
            self._add(ContentsGuard(source, copy.copy(value)))
        elif isinstance(value, (list, tuple, collections.deque)):
            if self._is_compared(value, source) and _is_plain(value):
                self._add(ContentsGuard(source, value if isinstance(value, tuple) else copy.copy(value)))
                return
            self._add(LengthGuard(source, len(value)))
            self._elements(source, enumerate(value))

    def _is_compared(self, value: Any, source: Source) -> bool:
        """Whether a container is compared as a whole: it is long, and nothing in it is an input of the program."""
        return len(value) > _FEW and not any(isinstance(p, Item) and p.base == source for p in self.promoted)

    def _elements(self, source: Source, items: Iterable[tuple[Any, Any]]) -> None:
        for key, item in items:
            self._value(Item(source, key), item)

    def _member(self, space: Source, source: Source, name: str, value: Any, key: Any = None) -> None:
        """What a name of a namespace stands for."""
        if is_kept(value):
            self.members.setdefault(space, {})[name] = value
        else:
            self._value(source, value, key)

    def _value(self, source: Source, value: Any, key: Any = None) -> None:
        if isinstance(value, _PRIMITIVES) and not isinstance(value, enum.Enum):
            self._add(ConstantGuard(source, value))
        elif isinstance(value, (*_CONTAINERS, torch.Tensor, torch.nn.Module)):
            return
        elif key not in self.written or is_kept(value) or isinstance(value, enum.Enum) or is_array(value):
            self._add(IdentityGuard(source, value))
            if is_array(value):
                self._add(BytesGuard(source, fingerprint(require_plain_array(value, source))))

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
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_ALWAYS_READ = frozenset({"training", *_HOOKS, "_parameters", "_buffers", "_modules"})
_LISTING = frozenset(  # what goes through all of a module's tensors or submodules
    {"parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"}
    | {"named_modules", "state_dict", "apply"}
)
_TABLES = ("_parameters", "_buffers", "_modules")
_WITHOUT_STATE = (torch.Tensor, functools.partial, type, weakref.ref)


def _file_of(code: CodeType, namespace: dict[str, Any]) -> str:
    """Where code is from; what the standard library has generated (a dataclass's ``__init__``) is from its module."""
    if not code.co_filename.startswith("<string>"):
        return code.co_filename
    return str(namespace.get("__file__", collections.__file__))


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


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute; a getter of the user's that raises anything is there."""
    try:
        return hasattr(value, name)
    except Exception:  # of any kind, for it is the user's code
        return True
