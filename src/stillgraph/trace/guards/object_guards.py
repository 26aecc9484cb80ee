"""Guards on what is read of functions, classes, modules and other objects."""

from __future__ import annotations

import abc
import functools
import inspect
import itertools
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

import torch

from stillgraph.core.files import is_below_torch, is_users
from stillgraph.core.lookup import (
    class_member,
    exception_state,
    is_unset,
    own_attributes,
    shown_attributes,
    slot_value,
    slots,
)
from stillgraph.core.parcel import Parcel
from stillgraph.program.facts.module_tables import HOOK_TABLES, MODULE_TABLES, table_of
from stillgraph.program.guards import (
    ConstantGuard,
    FunctionGuard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    NoAttributeGuard,
    TypeGuard,
    UnsetGuard,
)
from stillgraph.program.sources import Attribute, Cell, Held, Item, Slot, Source
from stillgraph.trace.code.names import free_come_to, names_in_torch, names_of
from stillgraph.trace.code.namespaces import class_attributes, class_space, classes_read, file_of, users_classes
from stillgraph.trace.guards.collector import PLAIN
from stillgraph.trace.guards.container_guards import ContainerGuards
from stillgraph.trace.sources.children import of_instance


@dataclass
class ObjectGuards(ContainerGuards):
    """What the code reads of objects, and what it asked them for and did not get."""

    def _hooks(self, table: dict[Any, Any], source: Source) -> None:
        """Hooks of a module, or of all."""
        self._add(KeysGuard(source, (*table,)) if table else LengthGuard(source, 0))
        for key, hook in table.items():
            self._value(Item(source, key), hook)

    def _cells(self, function: FunctionType) -> None:
        code = function.__code__
        followed = None if id(function) in self.reads.whole else self.reads.followed.get(code)
        read = code.co_freevars if followed is None else free_come_to(code, followed)
        names = zip(code.co_freevars, function.__closure__ or (), strict=True)
        for number, (name, cell) in enumerate(names):
            if id(cell) in self.left or name not in read:
                continue
            self._free.add(id(cell))
            if ("cell", id(cell)) in self.inputs:
                continue
            place = self.finder.passed_cell(function, number)
            if place is not None:
                self._value(place, cell)
            elif is_unset(cell):
                self._add(UnsetGuard(Cell(name, cell)))
            else:
                self._value(Cell(name, cell), cell.cell_contents)

    @functools.cached_property
    def _rewritten(self) -> frozenset[int]:
        """The ids of the functions that were rewritten, of which there may be thousands."""
        return frozenset(map(id, self.reads.functions))

    def _function(self, function: FunctionType, source: Source) -> None:
        code = function.__code__
        self._described(function, source)
        self._given(function, source)
        whole = id(function) in self.reads.whole
        if not whole and code not in self.reads.codes and id(function) not in self._rewritten:
            return
        has = (function.__defaults__ is not None, function.__kwdefaults__ is not None)
        self._add(FunctionGuard(source, code, *has))
        self._cells(function)
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self._value(Attribute(source, name), getattr(function, name))

    def _given(self, value: Any, source: Source) -> None:
        """The attributes that people have given a function, or one made of it, whether it is called or not."""
        state = own_attributes(value) or {}
        whole = id(value) in self.reads.whole or ("__dict__" in self.own and not _is_librarys(value))
        if whole:
            self._add(KeysGuard(Attribute(source, "__dict__"), tuple(state)))
        for name, item in state.items():
            if whole or self._reads(value, name):
                self._attribute(value, source, name, item)
        self._asked(value, source)

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

    def _class(self, kind: type) -> None:
        """What the code mentions of a class, where it is found and where it might come to be found first."""
        if users_classes(kind) and not is_below_torch(file_of(kind)):
            self._add(IdentityGuard(Attribute(Held(kind.__qualname__, kind), "__mro__"), kind.__mro__))
            self._described(kind, Held(kind.__qualname__, kind))
            if "__subclasses__" in self.own:
                self.reads.settings.append((type.__subclasses__, (kind,), type.__subclasses__(kind)))
        relied = {name for owner, name in self.relied if any(id(base) == owner for base in kind.__mro__)}
        names = (self.names.attributes | relied) - (_DESCRIPTIONS - self.own)  # libraries' are described for ever
        for space, base, present, missing in classes_read(kind, names, self.of_protocols):
            for name in present:
                key = ("attribute", id(base), name)
                if key not in self.inputs:
                    self._member(space, Item(space, name), name, vars(base)[name], key)
            for above in users_classes(type(base)) if present else ():
                absent = {name: None for name in present if name not in vars(above)}
                self.missing.setdefault(class_space(above), {}).update(absent)
            if missing:
                self.missing.setdefault(space, {}).update(dict.fromkeys(missing))
        by_name = sorted(self.names.asked) if is_users(file_of(kind)) else ()
        asked = self.asked.get(id(kind), {}) | dict.fromkeys(by_name) | dict.fromkeys(sorted(relied))
        lacking = dict.fromkeys(names_lacking(kind, asked))
        for base in (*users_classes(kind), *users_classes(type(kind))) if lacking else ():
            absent = {name: None for name in lacking if name not in vars(base)}  # one of an enumeration's, say, raises
            self.missing.setdefault(class_space(base), {}).update(absent)

    def _module(self, module: torch.nn.Module, source: Source) -> None:
        self._add(TypeGuard(source, type(module)))
        if isinstance(module, torch.jit.ScriptModule):
            self._compiled_module(module, source)
            return
        is_own = "training" in module.__dict__  # that of what torch wraps is a property: it asks the module inside
        mode = Slot(source, "__dict__", "training") if is_own else Attribute(source, "training")
        self._add(ConstantGuard(mode, module.training))
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
            called = name == "forward" or name in in_torch  # by torch
            read = called or name in self.names.attributes or (id(module), name) in self.relied
            if read and name not in _ALWAYS_READ and ("attribute", id(module), name) not in self.inputs:
                self._value(Slot(source, "__dict__", name), value, ("attribute", id(module), name))
        hidden: list[str] = []
        for table_name in MODULE_TABLES:
            for name, value in module.__dict__[table_name].items():
                read = name in self.names.attributes | in_torch or (id(module), name) in self.relied
                read = read or (self.listed and value is None)  # an entry left out
                self._entry(module, Slot(source, table_name, name), value, read)
                hidden += [name] if read and name not in module.__dict__ else []
        if hidden:
            self.hiding[Attribute(source, "__dict__")] = tuple(hidden)
        self._shadowed(module, source, {"forward", *in_torch})
        own = itertools.chain(module.__dict__, *(module.__dict__[table] for table in MODULE_TABLES))
        self._unhidden(module, (name for name in own if self._reads(module, name)))
        self._asked(module, source)

    def _compiled_module(self, module: torch.jit.ScriptModule, source: Source) -> None:
        """What torch.jit has made of a module: its state is out of sight, and the code that runs only holds it."""
        training = getattr(module, "training", None)  # which a frozen one has no more
        if training is not None:
            self._add(ConstantGuard(Attribute(source, "training"), training))
        for name, value in module.named_children():
            self._reach(value, Attribute(source, name))

    def _entry(self, module: torch.nn.Module, source: Slot, value: Any, named: bool) -> None:
        """What a module has registered under a name; submodules may also be come to by names that are computed."""
        if isinstance(value, torch.nn.Module):
            self._reach(value, source)
        elif named:
            self._value(source, value, ("attribute", id(module), source.name))
        elif self.listed and ("attribute", id(module), source.name) not in self.inputs:
            self._add(TypeGuard(source, type(value)))  # those that are None are left out of the listing

    def _instance(self, value: Any, source: Source) -> None:
        state = shown_attributes(value)
        if isinstance(state, dict) or slots(type(value)):
            self._add(TypeGuard(source, type(value)))
        whole = self._reads_all(value)
        if isinstance(state, dict):
            if whole:
                self._add(KeysGuard(Attribute(source, "__dict__"), tuple(state)))
            for name, item in state.items():
                key = ("attribute", id(value), name)
                if (whole or self._reads(value, name)) and key not in self.inputs:
                    plain = _is_compared_plainly(item)
                    place = Slot(source, "__dict__", name) if plain else of_instance(value, source, name)
                    self._value(place, item, key)
            self._shadowed(value, source, set())
            self._unhidden(value, state if whole else (name for name in state if self._reads(value, name)))
        for name in slots(type(value)):
            held = slot_value(value, name, _NOTHING)
            if self._reads(value, name) and held is not _NOTHING:
                self._attribute(value, source, name, held)
        for name, held in exception_state(value) if isinstance(value, BaseException) else ():
            shown = name == "args" or (_is_compared_plainly(held) and not name.startswith("__"))  # in its text
            if shown or name in self.own:
                self._attribute(value, source, name, held)
        self._asked(value, source)

    def _reads_all(self, value: Any) -> bool:
        """Whether the code may read each attribute of an object, whatever names it mentions."""
        named = self.takes_all and type(value) is not Parcel  # which no code has got hold of
        return named or id(value) in self.reads.whole or not _looks_up_plainly(type(value))

    def _shadowed(self, value: Any, source: Source, also: set[str]) -> None:
        """The attributes that an object has of its class stay those, as long as it has none of these names itself."""
        state = value.__dict__
        read = also | self._relied_of(value)
        names = [name for name in class_attributes(type(value)) if name in read or name in self.names.attributes]
        given = [n for n in names if ("attribute", id(value), n) in self.inputs]
        shadowed = tuple(name for name in names if name not in state and name not in given)
        if shadowed:
            self.missing.setdefault(Attribute(source, "__dict__"), {}).update(dict.fromkeys(shadowed))

    def _unhidden(self, value: Any, names: Iterable[str]) -> None:
        """The attributes that an object has itself stay those, as long as no class comes to have a descriptor for one.

        That goes for those that the program writes, too: a descriptor may be asked to store them.
        """
        written = (name for name in own_attributes(value) if ("attribute", id(value), name) in self.written)
        own = dict.fromkeys((*names, *written))
        for base in users_classes(type(value)):
            absent = {name: None for name in own if name not in vars(base)}
            if absent:
                self.missing.setdefault(class_space(base), {}).update(absent)

    @functools.cached_property
    def _relied_names(self) -> dict[int, set[str]]:
        names: dict[int, set[str]] = {}
        for owner, name in self.relied:
            names.setdefault(owner, set()).add(name)
        return names

    def _relied_of(self, value: Any) -> set[str]:
        """The attributes of an object that the program may leave as they were, or that it may not have."""
        return self._relied_names.get(id(value), set())

    def _asked(self, value: Any, source: Source) -> None:
        """What an object was asked for and does not have."""
        names = dict.fromkeys(sorted(self._asked_of(value) | self._relied_of(value))) | self.asked.get(id(value), {})
        lacking = dict.fromkeys(names_lacking(value, names))
        if not lacking:
            return
        if not isinstance(shown_attributes(value), dict):
            for name in lacking:
                self.guards[NoAttributeGuard, source, name] = NoAttributeGuard(source, name)
            return
        tables = MODULE_TABLES if isinstance(value, torch.nn.Module) else ()
        own: list[Source] = [Attribute(source, "__dict__"), *(Slot(source, "__dict__", table) for table in tables)]
        for space in (*own, *map(class_space, users_classes(type(value)))):
            self.missing.setdefault(space, {}).update(lacking)

    def _asked_of(self, value: Any) -> frozenset[str]:
        """What code that was not rewritten may have asked an object for."""
        if isinstance(value, FunctionType):  # of which there are many
            return frozenset() if _is_librarys(value) else self.names.asked & self.own
        if not isinstance(value, torch.nn.Module):
            is_dict = isinstance(shown_attributes(value), dict)
            return self.names.asked if is_dict or slots(type(value)) else frozenset()
        methods = (member for base in users_classes(type(value)) for member in vars(base).values())
        asked = (names_of(m.__code__).asked for m in methods if isinstance(m, FunctionType))
        return self.of_protocols.union(self.names.asked & self.own, *asked)


def _is_librarys(value: Any) -> bool:
    """Whether it is a function that is not the user's."""
    return isinstance(value, FunctionType) and not is_users(value.__code__.co_filename)


def _is_asked_in_python(kind: type) -> bool:
    """Whether a class of the user's computes attributes: asking for one runs code that may do something."""
    getter = class_member(kind, "__getattr__")
    return isinstance(getter, FunctionType) and is_users(getter.__code__.co_filename)


_NOTHING = object()
_DESCRIPTIONS = frozenset({"__name__", "__qualname__", "__module__", "__doc__", "__annotations__"})
_ALWAYS_READ = frozenset({"training", *HOOK_TABLES, *MODULE_TABLES})


def _is_compared_plainly(value: Any) -> bool:
    """Whether a guard on an attribute's value says all: reading it past the class is quicker, and as good."""
    return type(value) in PLAIN or isinstance(value, (torch.dtype, torch.device))


def _looks_up_plainly(kind: type) -> bool:
    """Whether an attribute of an object of a class is looked up in its dictionary and its class alone."""
    plain = class_member(kind, "__getattr__") in (None, vars(torch.nn.Module)["__getattr__"])
    return plain and _found_in(kind, "__getattribute__") is object and kind.__dictoffset__ != 0


_ROOTS = (object, abc.ABC, torch.nn.Module)


def is_plainly_the_users(kind: type) -> bool:
    """Whether an object's attributes are read by code that mentions them: the user's, a module's ``forward``."""
    bases = (base for base in kind.__mro__ if not any(base is each for each in _ROOTS))
    return _looks_up_plainly(kind) and all(is_users(file_of(base)) for base in bases)


def _found_in(kind: type, name: str) -> type:
    """The class that an attribute of a class is found in."""
    return next(base for base in kind.__mro__ if name in vars(base))


def names_lacking(value: Any, names: Iterable[str]) -> Iterator[str]:
    """Those of some names that an object has no attribute of."""
    spaces = _spaces(value)
    for name in names:
        if (spaces is not None and not any(name in space for space in spaces)) or not has_attribute(value, name):
            yield name


def _spaces(value: Any) -> list[Any] | None:
    """All that Python looks in for an object's attributes; None where it does not only look."""
    kind = type(value)
    module = isinstance(value, torch.nn.Module)
    if class_member(kind, "__getattribute__") not in (object.__getattribute__, type.__getattribute__):
        return None
    if class_member(kind, "__getattr__") not in (None, *([torch.nn.Module.__getattr__] if module else [])):
        return None
    if isinstance(value, types.ModuleType):
        return None
    bases = [*kind.__mro__, *(value.__mro__ if isinstance(value, type) else ())]
    own = own_attributes(value) or {}
    tables = [own[name] for name in MODULE_TABLES if name in own] if module else []
    return [own, *tables, *map(vars, bases)]


def has_attribute(value: Any, name: str) -> bool:
    """Whether an object has an attribute; a getter of the user's is there, whatever it does, and nothing is called."""
    if isinstance(value, torch.nn.Module) and table_of(value, name) is not None:
        return True
    try:
        found = inspect.getattr_static(value, name, _NOTHING)
        if isinstance(found, (property, functools.cached_property)) or _is_asked_in_python(type(value)):
            return found is not _NOTHING
        return hasattr(value, name)
    except Exception:  # of any kind, for it is the user's code
        return True
