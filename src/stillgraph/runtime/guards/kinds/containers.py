"""Guards on containers: their length, the classes of their elements, their keys."""

from __future__ import annotations

import types
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from stillgraph.program.guards import ElementsGuard, KeysGuard, LengthGuard
from stillgraph.program.sources import Slot, Source
from stillgraph.runtime.guards.comparing import BY_IDENTITY, strict_key
from stillgraph.runtime.guards.kinds.kind import Kind, Read
from stillgraph.runtime.guards.weak import WeakObject, are_keys, weak_object
from stillgraph.runtime.guards.words import shown
from stillgraph.runtime.native.function_writer import FunctionWriter

_TOLD_BY_EQUALITY = frozenset({str, bytes, int, bool, type(None)})  # together with the type
_PLAIN = (int, float, complex, str, bytes, range, slice, tuple, type(None), type(Ellipsis), type(NotImplemented))
_HELD = (*_PLAIN, *BY_IDENTITY)  # keys that a guard may keep alive


class OfLengths(Kind[LengthGuard]):
    """A sequence is of a length."""

    cost = 2

    def miss(self, guard: LengthGuard, writer: FunctionWriter) -> str:
        value = writer.read(guard.source)
        return value if guard.length == 0 and _is_hook_table(guard.source) else f"len({value}) != {guard.length}"

    def why(self, guard: LengthGuard, read: Read) -> str | None:
        found = len(read(guard.source))
        return None if found == guard.length else f"len({guard.source}) should be {guard.length}, but is {found}"


class OfElements(Kind[ElementsGuard]):
    """Every element of a list is of just this class."""

    def miss(self, guard: ElementsGuard, writer: FunctionWriter) -> str:
        value = writer.read(guard.source)
        return f"[*map(type, {value})].count({writer.constant(guard.type)}) != len({value})"

    def why(self, guard: ElementsGuard, read: Read) -> str | None:
        other = next((type(value) for value in read(guard.source) if type(value) is not guard.type), None)
        wanted = f"{guard.source} should hold only {guard.type.__qualname__}s"
        return None if other is None else f"{wanted}, but holds a {other.__qualname__}"


class OfKeys(Kind[KeysGuard]):
    """A mapping has these keys, or a set these elements, in this order."""

    cost = 3

    def miss(self, guard: KeysGuard, writer: FunctionWriter) -> str:
        value, keys = writer.read(guard.source), guard.keys
        if _is_module_table(guard.source):
            return f"[*{value}] != {writer.constant(list(keys))}"
        if all(type(key) in _TOLD_BY_EQUALITY for key in keys):
            kinds = writer.constant([*map(type, keys)])
            return f"[*{value}] != {writer.constant(list(keys))} or [*map(type, {value})] != {kinds}"
        if keys and all(isinstance(key, BY_IDENTITY) for key in keys):  # a registry of many classes, say
            writer.constant(keys)  # for as long as they are there, nothing else has their ids
            return f"[*map(id, {value})] != {writer.constant([*map(id, keys)])}"
        keys = self.weakened(guard).keys
        if any(isinstance(key, WeakObject) for key in keys):
            return f"not {writer.constant(are_keys)}({value}, {writer.constant(keys)})"
        return f"{writer.constant(strict_key)}((*{value},)) != {writer.constant(strict_key(keys))}"

    def why(self, guard: KeysGuard, read: Read) -> str | None:
        container = read(guard.source)
        if not isinstance(container, (Collection, types.MappingProxyType)) or isinstance(container, torch.Tensor):
            return f"{guard.source} should have keys, but is {shown(container)}"
        found = (*container,)
        if are_keys(found, guard.keys):
            return None
        if isinstance(container, (set, frozenset)):
            return _of_sets(guard.source, guard.keys, container)
        return f"the keys of {guard.source} should be {shown(list(guard.keys))}, but are {shown(list(found))}"

    def weakened(self, guard: KeysGuard) -> KeysGuard:
        if all(isinstance(key, _HELD) for key in guard.keys):
            return guard
        keys = (key if isinstance(key, _HELD) else weak_object(key) for key in guard.keys)
        return KeysGuard(guard.source, tuple(keys))


def _of_sets(source: Source, expected: tuple[Any, ...], found: AbstractSet[Any]) -> str:
    gone = [key for key in expected if key not in found]
    new = [key for key in found if key not in expected]
    if gone:
        return f"{source} should hold {shown(gone[0])}, but does not"
    if new:
        return f"{source} should not hold {shown(new[0])}, but does"
    return f"{source} should go through its elements in the order {shown(list(expected))}, but does not"


def _is_hook_table(source: Source) -> bool:
    """Whether torch keeps a module's hooks there: a plain dict, whose truth value says whether it is empty."""
    return isinstance(source, Slot) and source.table == "__dict__" and source.name.endswith("_hooks")


def _is_module_table(source: Source) -> bool:
    """Whether torch keeps a module's children there, and sees to it that their names are strings."""
    tables = ("_modules", "_parameters", "_buffers")
    return isinstance(source, Slot) and source.table == "__dict__" and source.name in tables
