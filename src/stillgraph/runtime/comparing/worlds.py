"""Copies of all that a call can reach: its arguments, and what its functions find in closures, globals and classes.

A function finds its globals where they are, so copies of those cannot stand beside them. While a copy is in use they
stand in their place, and afterwards every binding is put back.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_dependency
from stillgraph.core.lookup import is_unset, own_attributes
from stillgraph.program.facts.schemas import OPERATORS, implementations

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    torch.jit.ScriptFunction,
)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, range, slice)


@dataclass(frozen=True)
class _Place:
    """A binding outside of the arguments that a copy replaces: a global, a cell, a function's or class's attribute."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]


@dataclass(frozen=True)
class Copied:
    """A call on copies.

    Attributes:
        function, args, kwargs: what to call.
        found: what else the call can reach by name, as it is now.
        traced: for each tensor of the copy that stands for one in the midst of an autograd graph, its leaf.
        copy_of: the copy of any object that was reached.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    found: Callable[[], dict[str, Any]]
    traced: Mapping[int, torch.Tensor]
    copy_of: Callable[[Any], Any]


@dataclass
class World:
    """What a call can reach, and a program by objects of its own.

    State of installed packages, the standard library and torch is not copied; of torch and Python, `outcomes.observe`
    puts back the random generators.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    held: Sequence[Any] = ()  # what a program holds besides
    _places: list[_Place] = field(default_factory=list)
    _spaces: list[tuple[str, Any]] = field(default_factory=list)  # modules' globals and classes
    _traced: list[torch.Tensor] = field(default_factory=list)
    _shared: list[Any] = field(default_factory=list)  # modules and operators, which stand for themselves
    _optimizers: list[torch.optim.Optimizer] = field(default_factory=list)
    _references: list[weakref.ref[Any]] = field(default_factory=list)  # to what is copied

    def __post_init__(self) -> None:
        _Search(self).reach(self.function, self.args, self.kwargs, *self.held)

    @contextlib.contextmanager
    def copied(self) -> Iterator[Copied]:
        """A block in which the functions of this world find copies of what they would find otherwise.

        Raises:
            CheckError: something cannot be copied (SG503).
        """
        memo: dict[int, Any] = {id(each): each for each in self._shared}
        leaves = self._traced_copies(memo)
        self._copy_optimizers(memo)
        for reference in self._references:
            memo[id(reference)] = weakref.ref(_copy("an object that is referred to weakly", reference(), memo))
        function = _copy("the function", self.function, memo)
        args = tuple(_copy(f"args[{i}]", each, memo) for i, each in enumerate(self.args))
        kwargs = {name: _copy(f"kwargs[{name!r}]", each, memo) for name, each in self.kwargs.items()}
        before = [(place, place.read()) for place in self._places]
        copies = [(place, _copy(place.name, value, memo)) for place, value in before]
        with self._bindings_put_back():
            try:
                for place, value in copies:
                    place.write(value)
                now = {id(space): dict(_entries(space)) for _, space in self._spaces}
                copy_of = functools.partial(_copied_with, memo)
                yield Copied(function, args, kwargs, lambda: self._found(now), leaves, copy_of)
            finally:
                for place, value in before:
                    place.write(value)

    def _traced_copies(self, memo: dict[int, Any]) -> dict[int, torch.Tensor]:
        """Copies of tensors that have a history: each begins a history of its own."""
        leaves = {}
        for tensor in self._traced:
            leaf = _copy("a tensor", tensor.detach(), memo).requires_grad_()
            with torch.enable_grad():
                memo[id(tensor)] = leaf.clone()
            leaves[id(memo[id(tensor)])] = leaf
        return leaves

    def _copy_optimizers(self, memo: dict[int, Any]) -> None:
        """Copy optimizers with all they have: torch leaves out hooks, and a ``step`` that a scheduler put there."""
        copies = [(optimizer, object.__new__(type(optimizer))) for optimizer in self._optimizers]
        memo |= {id(optimizer): made for optimizer, made in copies}
        for optimizer, made in copies:
            vars(made).update({name: _copy(f"its {name}", each, memo) for name, each in vars(optimizer).items()})

    def _found(self, before: dict[int, dict[str, Any]]) -> dict[str, Any]:
        """What the places hold, and whatever names have been bound since."""
        found = {place.name: _or_nothing(place.read) for place in self._places}
        for name, space in self._spaces:
            entries, known = dict(_entries(space)), before[id(space)]
            for key in dict.fromkeys((*known, *entries)):
                if key != "__warningregistry__" and entries.get(key, NOTHING) is not known.get(key, NOTHING):
                    found[f"{name}.{key}"] = entries.get(key, NOTHING)
        return found

    @contextlib.contextmanager
    def _bindings_put_back(self) -> Iterator[None]:
        before = [(space, dict(_entries(space))) for _, space in self._spaces]
        try:
            yield
        finally:
            for space, entries in before:
                _put_back(space, entries)


class Nothing:
    """Stands for what is not there."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def _or_nothing(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (AttributeError, KeyError, ValueError):  # it was deleted
        return NOTHING


def _copy(name: str, value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception as error:  # of any kind: classes say in their own ways that they are not to be copied
        kind = type(value).__qualname__
        why = f"{name} (a {kind}) cannot be copied for eager PyTorch to run on: {type(error).__name__}: {error}"
        raise refuse("SG503", why) from error


def _copied_with(memo: dict[int, Any], value: Any) -> Any:
    return _copy("an object of the program's", value, memo)


def _entries(space: Any) -> Any:
    return space if isinstance(space, dict) else vars(space)


def _put_back(space: Any, entries: dict[str, Any]) -> None:
    now = dict(_entries(space))
    changed = [key for key in (*now, *entries) if now.get(key, NOTHING) is not entries.get(key, NOTHING)]
    for key in dict.fromkeys(changed):
        if isinstance(space, dict):
            if key in entries:
                space[key] = entries[key]
            else:
                del space[key]
        elif key in entries:
            type.__setattr__(space, key, entries[key])
        else:
            type.__delattr__(space, key)


class _Search:
    """Finds what the functions of a call can reach, by the names in their code."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: dict[int, Any] = {}  # and keeps them, so that no address is given to another object

    def reach(self, *values: Any) -> None:
        """Go through values and all they lead to."""
        waiting = [*values]
        while waiting:
            value = waiting.pop()
            if isinstance(value, _PLAIN) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            waiting += self._led_to(value)
        self._world._references += [
            each for each in self._seen.values() if isinstance(each, weakref.ref) and id(each()) in self._seen
        ]

    def _led_to(self, value: Any) -> list[Any]:
        if isinstance(value, torch.Tensor):
            if value.grad_fn is not None:
                self._world._traced.append(value)
            return []
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if isinstance(value, types.ModuleType):
            self._world._shared.append(value)
            return []
        if isinstance(value, OPERATORS):
            self._world._shared.append(value)
            return implementations(value)
        if isinstance(value, type):
            return self._of_class(value)
        if isinstance(value, torch.optim.Optimizer):
            self._world._optimizers.append(value)
        if isinstance(value, Mapping) and type(value).__module__ in ("builtins", "collections"):
            return [*value.keys(), *value.values()]
        if isinstance(value, (list, tuple, set, frozenset)):
            return [*value, type(value)]
        if isinstance(value, types.MethodType):
            return [value.__func__, value.__self__]
        if isinstance(value, functools.partial):
            return [value.func, value.args, value.keywords]
        inside = own_attributes(value)
        return [type(value), *(inside.values() if inside else ())]

    def _of_function(self, function: types.FunctionType) -> list[Any]:
        if is_dependency(function.__code__.co_filename):
            return self._of_library_function(function)
        space, found = function.__globals__, []
        self._add_space(str(space.get("__name__", "globals")), space)
        names = _names(function.__code__)
        for name in sorted(names & space.keys()):
            found += self._of_global(str(space.get("__name__", "globals")), space, name, names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if not is_unset(cell):
                found.append(cell.cell_contents)
                # A closure's variable may be written to whatever it holds; globals and classes are put back as a whole.
                place = _Place(f"'{name}' of {function.__qualname__}", *_attribute(cell, "cell_contents"))
                self._world._places.append(place)
        for name in ("__defaults__", "__kwdefaults__"):
            found.append(getattr(function, name))
            self._add(f"{function.__qualname__}.{name}", found[-1], *_attribute(function, name))
        return [*found, *vars(function).values()]

    def _of_library_function(self, function: types.FunctionType) -> list[Any]:
        """Its closure; a scheduler's ``step`` of an optimizer finds the optimizer there by a weak reference."""
        cells = [cell for cell in function.__closure__ or () if not is_unset(cell)]
        for cell in cells:
            if isinstance(cell.cell_contents, weakref.ref):
                name = f"a reference of {function.__qualname__}"
                self._world._places.append(_Place(name, *_attribute(cell, "cell_contents")))
        return [cell.cell_contents for cell in cells]

    def _of_global(self, module: str, space: dict[str, Any], name: str, names: set[str]) -> list[Any]:
        value = space[name]
        if isinstance(value, types.ModuleType):
            if is_dependency(getattr(value, "__file__", None) or "<frozen"):
                return [value]
            self._add_space(value.__name__, vars(value))
            inside = sorted(names & vars(value).keys())
            for each in inside:
                self._add(f"{value.__name__}.{each}", vars(value)[each], *_item(vars(value), each))
            return [value, *(vars(value)[each] for each in inside)]
        self._add(f"{module}.{name}", value, *_item(space, name))
        return [value]

    def _of_class(self, kind: type) -> list[Any]:
        module = str(vars(kind).get("__module__"))
        file = getattr(sys.modules.get(module), "__file__", None) or "<frozen"
        if module != "__main__" and is_dependency(file):
            return [*kind.__bases__] if kind is not object else []
        self._add_space(kind.__qualname__, kind)
        found: list[Any] = [*kind.__bases__]
        for name, value in list(vars(kind).items()):
            if isinstance(value, (staticmethod, classmethod)):
                found.append(value.__func__)
            elif isinstance(value, property):
                found += [value.fget, value.fset, value.fdel]
            elif isinstance(value, types.FunctionType):
                found.append(value)
            elif not name.startswith("__"):
                found.append(value)
                self._add(f"{kind.__qualname__}.{name}", value, *_member(kind, name))
        return found

    def _add(self, name: str, value: Any, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        """Copy what a place holds, where that can change."""
        fixed = isinstance(value, (*_PLAIN, *_FUNCTIONS, *OPERATORS, type, types.ModuleType)) or _is_descriptor(value)
        if not fixed:
            self._world._places.append(_Place(name, read, write))

    def _add_space(self, name: str, space: Any) -> None:
        if all(known is not space for _, known in self._world._spaces):
            self._world._spaces.append((name, space))


def _is_descriptor(value: Any) -> bool:
    """Whether what a class holds is machinery of the class's, such as a slot."""
    return isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType))


def _names(code: types.CodeType) -> set[str]:
    """The names that a function's code, and that of the functions in it, looks up."""
    inside = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names, inside))


def _attribute(owner: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return functools.partial(getattr, owner, name), functools.partial(setattr, owner, name)


def _item(space: dict[str, Any], name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return functools.partial(space.__getitem__, name), functools.partial(space.__setitem__, name)


def _member(kind: type, name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return lambda: vars(kind)[name], functools.partial(type.__setattr__, kind, name)
