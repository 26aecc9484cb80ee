"""Guards on the Python world: what the code of a capture could have read of the objects that the call reaches."""

from __future__ import annotations

import contextvars
import functools
import gc
import itertools
import operator
import sys
import types
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, cast

import torch

from stillgraph.core.files import is_below_torch, is_library, is_of_fakes, is_ours, is_standard_library
from stillgraph.core.lookup import is_unset, own_attributes
from stillgraph.core.parcel import Parcel
from stillgraph.program.facts.module_tables import MODULE_TABLES
from stillgraph.program.guards import (
    ApartGuard,
    EnvironmentGuard,
    Guard,
    KeysGuard,
    MembersGuard,
    MissingGuard,
    ReadingGuard,
    UnsetGuard,
)
from stillgraph.program.sources import INNER, Attribute, Called, Global, Held, Item, Slot, Source
from stillgraph.trace.code.hook_reads import cells_left_alone, hooks_of_modules
from stillgraph.trace.code.names import (
    Names,
    names_come_to,
    names_in_getter,
    names_in_torch,
    names_of,
    taken_otherwise,
    takes_all_unseen,
)
from stillgraph.trace.code.namespaces import (
    attributes_below,
    class_space,
    is_users,
    module_attributes,
    module_member,
    namespace_of,
    protocol_names,
    users_classes,
    variable,
)
from stillgraph.trace.effects.modules import global_hooks
from stillgraph.trace.fakes.torch_settings import backend_settings
from stillgraph.trace.guards.aliasing import cells_apart, containers_apart, opened_alike
from stillgraph.trace.guards.object_guards import ObjectGuards, has_attribute, is_plainly_the_users
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.sources.kinds_of_objects import STEPS, is_machinery, steps_of
from stillgraph.trace.sources.reads import Failure, code_file, variable_value


@dataclass
class WorldGuards(ObjectGuards):
    """Collects the guards on what the code of a capture could read."""

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
        self._left_to_hooks([value for value, _ in found])
        self.of_protocols = frozenset().union(*(protocol_names(value) for value, _ in found if isinstance(value, type)))
        self.names |= Names(attributes=self.of_protocols, asked=self.of_protocols)
        if not self.reads.deep and scopes.keys() <= self.reads.followed.keys():
            self.partly = self._read_in_part()
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
            if self._is_passed_over(value):
                continue
            if isinstance(value, type):
                self._class(value)
            elif id(value) not in self._reached and self._may_be_read(value, source):
                self._reach(value, source)
        for value, source in self.finder.unopened.values():
            self._opened_by_name(value, source)
        self._walk()
        for function, args, value in self.reads.settings:
            self.guards[ReadingGuard, function, args] = ReadingGuard(function, args, value)
        for function, args in backend_settings(self.names.attributes):
            self.guards[ReadingGuard, function, args] = ReadingGuard(function, args, function(*args))
        for guard in self.reads.environment.guards():
            self.guards[EnvironmentGuard, guard.name] = guard
        spaces = [MembersGuard(source, tuple(names.items())) for source, names in self.members.items()]
        spare = [MissingGuard(source, (), names) for source, names in self.hiding.items() if source not in self.missing]
        lacking = [MissingGuard(s, tuple(n), self.hiding.get(s, ())) for s, n in self.missing.items()] + spare
        apart = [ApartGuard(tuple(self._compared.values()))] if len(self._compared) > 1 else []
        return [*self.guards.values(), *spaces, *lacking, *apart, *self._aliasing()]

    def _aliasing(self) -> Iterator[Guard]:
        """Which of the paths that the code reads by lead to one object, and which do not."""
        yield from opened_alike(self._paths.get(key, ()) for key in {id(value) for value in self.opened.values()})
        yield from containers_apart(self._reached.values(), self._may_be_told, by_keys=not self.partly)
        yield from cells_apart(self._reached.values())

    def _may_be_told(self, containers: Iterable[int]) -> bool:
        """Whether the code can tell containers, given by their ids, from one another: it writes, or compares."""
        return self.compares or any(("contents", key) in self.written for key in containers)

    def read_at(self, value: Any) -> Source | None:
        """The first of the paths by which the code reads an object; None where it comes to it by none."""
        known = self._reached.get(id(value))
        return None if known is None else known[1]

    def is_passed_by(self, source: Source) -> bool:
        """Whether the code does not come to what is found by a path: a step of it is one that no code takes.

        Such are parcels that are not opened, containers that are only moved, and attributes of the user's objects, and
        globals, that no code mentions; not what torch's own code takes by itself: parameters, gradients.
        """
        while isinstance(source, INNER):
            if self._is_step_untaken(source):
                return True
            source = source.base
        return isinstance(source, Global) and self._is_global_untaken(source)

    def _is_step_untaken(self, step: Source) -> bool:
        if isinstance(step, Item):
            return step.base in self.partly and step.key not in self.partly[step.base]
        if not (isinstance(step, Attribute) or (isinstance(step, Slot) and step.table == "__dict__")):
            return False
        owner = self._by_place.get(step.base)
        if type(owner) is Parcel:
            return not self._reads(owner, step.name)
        return is_plainly_the_users(type(owner)) and not (self._reads_all(owner) or self._reads(owner, step.name))

    def _is_global_untaken(self, source: Global) -> bool:
        """Whether no code looks for a global, be it by a name that it computes."""
        space = vars(sys.modules[source.module]) if source.module in sys.modules else None
        asked = any(name == source.name for _, name in self.reads.variables) or id(space) in self.reads.spaces
        return not asked and not self.was_read(source)

    @functools.cached_property
    def _by_place(self) -> dict[Source, Any]:
        return {source: value for value, source in self.finder.everything()}

    def _left_to_hooks(self, found: list[Any]) -> None:
        """What only hooks read, which autograd calls: it may change from call to call."""
        ran = {*self.reads.codes, *(function.__code__ for function in self.reads.functions)}
        hooks = [h for h in (*self.reads.hooks, *hooks_of_modules(found)) if h.__code__ not in ran]
        functions = [value for value in (*found, *self.reads.functions) if isinstance(value, FunctionType)]
        self.left = cells_left_alone(hooks, functions, self.reads.functions) if hooks else frozenset()

    def _asked_attributes(self) -> None:
        """What objects were asked for by a name that the code need not mention (``getattr(c, "k" + "1")``)."""
        self.names |= Names(attributes=frozenset(name for _, name in self.reads.attributes))
        for asked, name in self.reads.attributes:
            target = asked.__func__ if isinstance(asked, types.MethodType) else asked  # made anew whenever asked for
            self.asked.setdefault(id(target), {})[name] = None
            if isinstance(target, types.ModuleType):
                self._asked_module(target, name)

    def _asked_module(self, module: types.ModuleType, name: str) -> None:
        if not has_attribute(module, name):
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
            tables = [own_attributes(value), *map(vars, bases)]
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
            if not _is_special(name):  # what every module has
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
        own = functools.reduce(operator.or_, map(self._names_of, scopes), Names())
        users = (code for code, (space, _) in scopes.items() if not is_library(code_file(code, space)))
        of_users = functools.reduce(operator.or_, map(self._names_of, users), Names())
        self.own = of_users.attributes
        if of_users.catches:  # be it what the code that it calls does not find
            names |= Names(asked=self.own)
        ran = {code for code in (*scopes, *self.reads.codes) if not is_of_fakes(code.co_filename)}
        blind = [names_of(code) for code in ran - self.reads.followed.keys()]
        self.not_followed = frozenset().union(*(each.attributes | each.variables for each in blind))
        self.takes_all = "__dict__" in names.attributes | self.own or any(map(self._takes_all, scopes))
        self.taken = frozenset().union(*map(taken_otherwise, {*scopes, *self.reads.codes, *self.reads.followed}))
        self.listed = not _LISTING.isdisjoint(own.attributes)
        self.names = names | own
        return scopes

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
                self._go_through(value, source)

    def _opened_by_name(self, value: Any, source: Source) -> None:
        """What users' code mentions of an object of torch's or ours."""
        for name in sorted(self.own & own_attributes(value).keys()):
            self._attribute(value, source, name, own_attributes(value)[name])
        if id(value) in self.asked or not self.names.asked.isdisjoint(self.own):
            self._asked(value, source)

    def _go_through(self, value: Any, source: Source) -> None:
        for name, item in steps_of(value):
            if isinstance(value, types.CellType):
                self._value(Attribute(source, name), item, ("cell", id(value)))
            else:
                self._reach(item, Attribute(source, name))
        if isinstance(value, weakref.ref):
            self._reach(value(), Called(source))
        if isinstance(value, contextvars.ContextVar):
            if variable_value(value) is MISSING:
                self.reads.settings.append((Failure(value.get), (), LookupError))
            else:
                self._value(Called(Attribute(source, "get")), value.get())
        if isinstance(value, types.CellType) and is_unset(value):
            self._add(UnsetGuard(Attribute(source, "cell_contents")))
        self._contents(value, source)
        if isinstance(value, functools.partial):
            self._given(value, source)
        if not isinstance(value, (*_WITHOUT_STATE, *STEPS, types.ModuleType)):
            self._instance(value, source)

    def _variables(self, code: CodeType, namespace: dict[str, Any], function: FunctionType | None) -> None:
        """What the globals and builtins that a code object mentions stand for, and what it mentions of modules."""
        names = self._names_of(code)
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

    def _takes_all(self, code: CodeType) -> bool:
        """Whether code may take all of an object's attributes, of which of its objects nobody knows."""
        return takes_all_unseen(code) if code in self.reads.followed else "__dict__" in names_of(code).attributes

    def _names_of(self, code: CodeType) -> Names:
        followed = self.reads.followed.get(code)
        return names_of(code) if followed is None else names_come_to(code, followed)

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


_LISTING = frozenset(  # what goes through all of a module's tensors or submodules
    {"parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"}
    | {"named_modules", "state_dict", "apply", "__dict__", *MODULE_TABLES}
)
_WITHOUT_STATE = (torch.Tensor, functools.partial, type, weakref.ref)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
