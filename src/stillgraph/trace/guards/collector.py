"""Guards on what is read: a value is guarded where it is read, and gone through."""

from __future__ import annotations

import abc
import array
import collections
import enum
import os
import types
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import torch

from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.facts.values import is_value
from stillgraph.program.guards import AliasGuard, BytesGuard, ConstantGuard, Guard, IdentityGuard, TypeGuard
from stillgraph.program.sources import INNER, Attribute, Cell, Global, Item, Slot, Source
from stillgraph.trace.code.names import Names
from stillgraph.trace.code.namespaces import is_kept
from stillgraph.trace.guards.buffers import require_plain_array
from stillgraph.trace.sources.reads import Reads
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.arrays.functions import is_array

_PRIMITIVES = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None)})
CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, types.MappingProxyType)
_OPAQUE = PLAIN | {type(os.environ)}  # whose variables are guarded one by one
_IMMUTABLE = (tuple, frozenset)
_SHARED = (torch.nn.Module, list, dict, set, collections.deque, types.MappingProxyType, bytearray, array.array)
_STAYING = (enum.Enum, type, types.ModuleType, CodeType)
_WITHOUT_PARTS = (torch.dtype, torch.device, CodeType, type, types.ModuleType)


@dataclass
class Collector(abc.ABC):
    """Collects guards along the ways by which the code of a capture could read.

    What is found at the end of each is gone through in its turn: by `_go_through`, which derived classes define.

    Attributes:
        finder: the objects that the call reaches.
        reads: what was read.
        inputs: keys of the places whose numbers are inputs of the program; they are not guarded.
        relied: places whose old value is part of the program's effects.
        promoted: where numbers and lists are that are inputs of the program.
        written: keys of the places that the program writes.
        tensors: ids of the tensors whose metadata is guarded.
        compares: whether the code asks whether two objects are one.
        changed: of ``written`` what more was done to than that inputs were put there.
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
    hiding: dict[Source, tuple[str, ...]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    asked: dict[int, dict[str, None]] = field(default_factory=dict)
    opened: dict[Source, Any] = field(default_factory=dict)  # guarded by `told`, as arguments are
    of_protocols: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()  # the attributes that the user's code mentions, libraries' apart
    left: frozenset[int] = frozenset()  # ids of the cells that only hooks read
    not_followed: frozenset[str] = frozenset()  # the names that code mentions whose steps were not looked at
    takes_all: bool = False  # whether code may take all attributes of objects, nobody knows of which
    taken: frozenset[str] = frozenset()  # the globals of which code does more than to ask what is in them
    listed: bool = False  # whether the code goes through what modules hold
    changed: frozenset[Any] = frozenset()
    partly: dict[Source, dict[Any, None]] = field(default_factory=dict)  # containers: the entries that are read alone
    _reached: dict[int, tuple[Any, Source]] = field(default_factory=dict)  # by paths that the code reads
    _paths: dict[int, dict[Source, None]] = field(default_factory=dict)  # all of them, by the id of what is there
    _queue: collections.deque[tuple[Any, Source]] = field(default_factory=collections.deque)
    _free: set[int] = field(default_factory=set)  # ids of the cells that code reads, as far as it has run
    _compared: dict[int, Source] = field(default_factory=dict)  # tensors and tuples that may be asked to be one, by id

    def _add(self, guard: Any) -> None:
        self.guards.setdefault((type(guard), guard.source), guard)

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
        elif isinstance(value, (*CONTAINERS, torch.nn.Module)):
            pass  # guarded as it is gone through
        elif id(value) in self.reads.drawn and not self.compares:
            self._add(TypeGuard(source, type(value)))  # its items are guarded
        else:
            stays = is_kept(value) or isinstance(value, _STAYING)
            if not stays and not is_array(value) and (key in self.written or self.finder.is_passed(source)):
                self.opened.setdefault(source, value)  # the call, or one before it, may have made it anew
            else:
                self._add(IdentityGuard(source, value))
            if is_array(value):
                self._add(BytesGuard(source, fingerprint(require_plain_array(value, source))))
        self._reach(value, source)

    def _reach(self, value: Any, source: Source) -> None:
        """An object that the code comes to; where it comes by several ways, they have to lead to one object."""
        if type(value) in _OPAQUE or isinstance(value, _WITHOUT_PARTS) or is_value(value):
            return
        if isinstance(value, _IMMUTABLE):  # each path is gone through: two may lead to one tuple, or to like ones
            self._told_apart(value, source)
            self._go_through(value, source)
            return
        self._paths.setdefault(id(value), {})[source] = None
        known = self._reached.get(id(value))
        first = known[1] if known is not None else self.finder.find(value)
        if known is None:
            self._reached[id(value)] = value, source
            self._queue.append((value, source))
        if first in (None, source) or isinstance(value, torch.Tensor):
            return
        if isinstance(value, FunctionType) and source not in self.opened:
            return  # it is the same in each call
        shared = isinstance(value, _SHARED) or id(value) in self.reads.drawn
        if known is None or shared or self.finder.is_passed(source):
            assert first is not None
            self.guards[AliasGuard, first, source] = AliasGuard(first, source, same=True)

    def _tensor(self, tensor: torch.Tensor, source: Source, key: Any) -> None:
        if id(tensor) not in self.tensors or self.finder.find(tensor) != source:
            self._add(TypeGuard(source, type(tensor)))
        if self.finder.find(tensor) not in (None, source):  # the program has it from there, and the code from here
            self.finder.again.append((tensor, source))
        self._told_apart(tensor, source)

    def _told_apart(self, value: Any, source: Source) -> None:
        """What the code may ask to be one object with another."""
        if self.compares and not (type(value) is tuple and not value):
            first = self._compared.setdefault(id(value), source)
            if first != source:
                self.guards[AliasGuard, first, source] = AliasGuard(first, source, same=True)

    def was_read(self, source: Source) -> bool:
        """Whether every step of a path is named in the code."""
        while isinstance(source, INNER):
            name = step_name(source)
            if name is not None and not self._is_named(name):
                return False
            if isinstance(source, Item) and source.base in self.partly and source.key not in self.partly[source.base]:
                return False
            source = source.base
        if isinstance(source, Global) and self.reads.followed:
            return source.name in self.names.variables or self._is_named(source.name)
        if isinstance(source, Cell) and self.reads.followed:
            return id(source.cell) in self._free
        return not (isinstance(source, Cell) and id(source.cell) in self.left)

    def _is_named(self, name: str) -> bool:
        return name in self.names.attributes or name in _IMPLICIT

    def _reads(self, value: Any, name: str) -> bool:
        asked = self.asked.get(id(value), ())
        return name in self.names.attributes or name in asked or (id(value), name) in self.relied

    def _attribute(self, owner: Any, source: Source, name: str, value: Any) -> None:
        key = ("attribute", id(owner), name)
        if key not in self.inputs:
            self._value(Attribute(source, name), value, key)

    @abc.abstractmethod
    def _go_through(self, value: Any, source: Source) -> None:
        """Guard what the code reads of an object that is neither a module, a function, a class nor a tensor."""


def step_name(source: Source) -> str | None:
    """The name in the code by which it takes the last step of a path; None where it needs none."""
    if isinstance(source, Item):
        of_a_class = isinstance(source.base, Attribute) and source.base.name == "__dict__"
        return source.key if of_a_class and not source.key.startswith("__") else None
    return source.name if isinstance(source, (Attribute, Slot, Global, Cell)) else None


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
        "cell_contents",
    }
)
