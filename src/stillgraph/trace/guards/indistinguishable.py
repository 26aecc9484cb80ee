"""Whether code can tell which one of several like objects it was passed: if not, any of them may have the program."""

from __future__ import annotations

import abc
import dis
import functools
import gc
import itertools
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from types import BuiltinMethodType, CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

import torch
from torch import fx

from stillgraph.core.files import is_below_torch, is_ours, is_standard_library, is_torch
from stillgraph.core.lookup import is_exactly, own_attributes, slots
from stillgraph.core.parcel import Parcel
from stillgraph.program.acts import Place
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.graphs import regions
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    BytesGuard,
    ConstantGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    ObjectGuard,
    TypeGuard,
)
from stillgraph.program.sources import Attribute, Cell, Held, Item, Source
from stillgraph.trace.code.names import names_of
from stillgraph.trace.code.namespaces import file_of, namespace_of, users_classes
from stillgraph.trace.guards.argument_structure import is_constant, places_in
from stillgraph.trace.guards.buffers import require_plain_array
from stillgraph.trace.guards.tensor_guards import tensor_guards
from stillgraph.trace.sources.children import of_instance
from stillgraph.trace.sources.kinds_of_objects import is_anew
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.arrays.functions import is_array

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type, torch.dtype, torch.device, ModuleType)
_NEVER_READ = (TracebackType, FrameType)  # of exceptions: they lead to all that a call had, which no program reads
_SHOWING = frozenset({"print", "str", "repr", "format", "hash", "ascii"})  # what may show an address
_FORMATTING = frozenset({"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"})


@dataclass
class Told:
    """What tells objects apart that are alike.

    Attributes:
        finder: the objects that the code reaches.
        codes: the code that ran.
        compared: whether it compares objects with ``is``, or asks for their ids.
        hashed: whether it asks for their ids or hashes.
        shown: whether other code has made texts of objects.
        kept: what the program itself holds: constants of its graph, of its result and of its effects.
        identified: the objects whose ids or hashes the code asked for, by their ids.
        drawn: the iterators that it advances, likewise.
        read_at: where the code first comes to an object, if it does.
    """

    finder: Finder
    codes: Iterable[CodeType]
    compared: bool
    hashed: bool
    shown: bool
    kept: Iterable[Any]
    identified: Container[int]
    drawn: Container[int]
    read_at: Callable[[Any], Source | None]

    def guards(self, value: Any, source: Source) -> list[Guard]:
        """The guards on an argument: that it is this very object, or where nobody can tell, that it is like it."""
        if type(value) is Parcel:
            return [TypeGuard(source, Parcel)]  # what is in it is guarded where it was read
        if self._is_drawn(value):
            return [TypeGuard(source, type(value))]  # its items are guarded, and that it is none of the others
        if is_array(value):
            identity = [IdentityGuard(source, value)] if value.dtype.hasobject or self.can_tell(value) else []
            return [*identity, *_like_array(value, source)]
        like = None if self.can_tell(value) else self._likeness(value, source)
        return [IdentityGuard(source, value)] if like is None else like

    def _likeness(self, value: Any, source: Source) -> list[Guard] | None:
        """Guards on an object being like another, what the code reads of it aside; None for what has no like."""
        if type(value) is FunctionType:
            return _like_function(value, source)
        if type(value) is MethodType:
            owner = self.guards(value.__self__, Attribute(source, "__self__"))
            return [TypeGuard(source, MethodType), IdentityGuard(Attribute(source, "__func__"), value.__func__), *owner]
        if type(value) is BuiltinMethodType and is_exactly(value.__self__, _PLAIN_CONTAINERS):
            name = ConstantGuard(Attribute(source, "__name__"), value.__name__)
            container = TypeGuard(Attribute(source, "__self__"), type(value.__self__))
            return [TypeGuard(source, type(value)), name, container]  # what is in it is guarded where it is read
        if type(value) is functools.partial:
            return self._like_partial(value, source)
        return _like_object(value, source) if _is_ordinary(value) else None

    def _like_partial(self, value: Any, source: Source) -> list[Guard] | None:
        if vars(value):
            return None
        args, keywords = Attribute(source, "args"), Attribute(source, "keywords")
        guards = [TypeGuard(source, functools.partial), *self.guards(value.func, Attribute(source, "func"))]
        guards += [LengthGuard(args, len(value.args)), KeysGuard(keywords, tuple(value.keywords))]
        inside: list[tuple[Any, Source]] = [(item, Item(args, index)) for index, item in enumerate(value.args)]
        for item, place in [*inside, *((item, Item(keywords, name)) for name, item in value.keywords.items())]:
            if isinstance(item, torch.Tensor):
                guards += tensor_guards(item, place, (False,) * item.dim())
            elif is_constant(item):
                guards.append(ConstantGuard(place, item))
            else:
                guards += self.guards(item, place)
        return guards

    def _is_drawn(self, value: Any) -> bool:
        return id(value) in self.drawn and not self.compared

    def can_tell(self, value: Any) -> bool:
        """Whether the code may do different things with another object that is like this one."""
        return (
            self.compared
            or id(value) in self.finder.twice
            or self._has_siblings(value)
            or self._is_shown
            or self._are_keys
            or self._is_kept(value)
        )

    def _has_siblings(self, value: Any) -> bool:
        return any(True for _ in self._siblings(value))

    def _siblings(self, value: Any) -> Iterator[Source]:
        """Where other objects like it are at hand, to be compared in a way that is not seen (``in`` a list)."""
        kind, code = type(value), value.__code__ if isinstance(value, (FunctionType, MethodType)) else None
        for other, source in self.finder.everything():
            if type(other) is kind and other is not value and (code is None or other.__code__ is code):
                yield self.read_at(other) or source

    # ---- what an earlier part of the call has made
    def opened(self, value: Any, source: Source) -> list[Guard]:
        """As `guards`, for an object that an earlier part of the call may have made, or that calls put another for.

        Which of the paths to such objects lead to one, and which do not, is guarded: so the code may compare them.
        """
        if type(value) is CellType or self._is_drawn(value):
            return [TypeGuard(source, type(value))]
        siblings = [] if type(value) is MethodType else [*itertools.islice(self._siblings(value), _MOST_SIBLINGS + 1)]
        told = id(value) in self.identified or self._is_kept(value)
        if self.finder.is_passed(source):
            told = told or self.hashed or self._is_shown or self._are_keys
        like = None if told or len(siblings) > _MOST_SIBLINGS else self._opened_likeness(value, source)
        if like is None:
            return [IdentityGuard(source, value)]
        return [*like, ApartGuard((source, *siblings))] if siblings else like

    def _opened_likeness(self, value: Any, source: Source) -> list[Guard] | None:
        if type(value) is FunctionType:
            return _like_function_with_state(value, source) if is_anew(value) else None
        if type(value) is MethodType:
            function, owner = Attribute(source, "__func__"), Attribute(source, "__self__")
            guards: list[Guard] = [TypeGuard(source, MethodType), IdentityGuard(function, value.__func__)]
            is_plain = isinstance(value.__self__, (*_PLAIN, torch.Tensor, torch.nn.Module))
            return [*guards, *([] if is_plain else self.opened(value.__self__, owner))]
        if type(value) is functools.partial:
            return self._like_partial(value, source)
        return _like_object(value, source) if _is_ordinary(value, dataclasses=True) else None

    @functools.cached_property
    def _is_shown(self) -> bool:
        # torch's own code makes texts of tensors, sizes and dtypes, which say nothing of what object they are
        codes = (code for code in self.codes if not is_torch(code.co_filename))
        return self.shown or any(names_of(code).variables & _SHOWING or _formats(code) for code in codes)

    @functools.cached_property
    def _are_keys(self) -> bool:
        """Whether objects are keys or elements of something: the code might look for others there."""
        return any(
            isinstance(value, functools._lru_cache_wrapper)
            or (isinstance(value, (dict, set, frozenset)) and not all(map(_is_plain_key, value)))
            for value, _ in self.finder.everything()
        )

    def _is_kept(self, value: Any) -> bool:
        """Whether the program itself leads to an object; taken for granted where it leads to very many."""
        return len(self._reached) >= _MOST or id(value) in self._reached

    @functools.cached_property
    def _reached(self) -> dict[int, Any]:
        reached: dict[int, Any] = {}
        queue = deque(self.kept)
        while queue and len(reached) < _MOST:
            item = queue.popleft()
            if isinstance(item, (*_PLAIN, *_NEVER_READ, torch.Tensor, fx.Node, fx.Graph)) or id(item) in reached:
                continue
            if isinstance(item, Place):
                continue  # a line that warns: nothing is read of its module but what it has warned of
            reached[id(item)] = item
            if isinstance(item, (Cell, Held)):  # a path begins there; what it leads to, each call finds anew
                start = item.cell if isinstance(item, Cell) else item.value
                reached[id(start)] = start
            elif isinstance(item, FunctionType):
                queue += [*(item.__closure__ or ()), *(item.__defaults__ or ())]
            else:
                queue += gc.get_referents(item)
        return reached


def constants(graph: fx.GraphModule) -> list[Any]:
    """What the regions of a program hold, and what their operations are given, besides values of the run."""
    found: list[Any] = []
    for region in regions(graph):
        found += [held for name, held in vars(region).items() if not name.startswith("_")]
        found += [part for node in region.graph.nodes for part in (node.target, *node.args, *node.kwargs.values())]
    return found


_MOST = 10_000
_PLAIN_CONTAINERS = (list, dict, set, deque)


def _is_plain_key(key: Any) -> bool:
    return isinstance(key, _PLAIN) or (isinstance(key, tuple) and all(map(_is_plain_key, key)))


def _formats(code: CodeType) -> bool:
    if any(_formats(inner) for inner in code.co_consts if isinstance(inner, CodeType)):
        return True
    return any(instruction.opname in _FORMATTING for instruction in dis.get_instructions(code))


def _like_function(function: FunctionType, source: Source) -> list[Guard] | None:
    """A function that is made anew wherever it is passed; one with a name of its own stays itself."""
    state = (function.__closure__, function.__defaults__, function.__kwdefaults__, function.__dict__ or None)
    if not is_anew(function) or any(part is not None for part in state):
        return None
    return [
        TypeGuard(source, FunctionType),
        FunctionGuard(source, function.__code__, False, False),
        AliasGuard(Attribute(source, "__globals__"), namespace_of(function.__globals__), same=True),
        ConstantGuard(Attribute(source, "__closure__"), None),
        KeysGuard(Attribute(source, "__dict__"), ()),
    ]


def _like_function_with_state(function: FunctionType, source: Source) -> list[Guard]:
    """A function of the same code; its cells, defaults and attributes are guarded where they are read."""
    has = (function.__defaults__ is not None, function.__kwdefaults__ is not None)
    return [
        TypeGuard(source, FunctionType),
        FunctionGuard(source, function.__code__, *has),
        AliasGuard(Attribute(source, "__globals__"), namespace_of(function.__globals__), same=True),
    ]


def _like_array(array: Any, source: Source) -> list[Guard]:
    return [TypeGuard(source, type(array)), BytesGuard(source, fingerprint(require_plain_array(array, source)))]


def _like_object(value: Any, source: Source) -> list[Guard] | None:
    """An object that has tensors and containers where this one has them; the rest is guarded where it is read."""
    names = [*(own_attributes(value) or ()), *slots(type(value))]
    places = (place for name in names for place in places_in(getattr(value, name), of_instance(value, source, name)))
    inside = list(itertools.islice(places, _MOST_INSIDE + 1))
    if len(inside) > _MOST_INSIDE:
        return None
    return [ObjectGuard(source, type(value)), *(TypeGuard(place, type(part)) for part, place in inside)]


_MOST_INSIDE = 64
_MOST_SIBLINGS = 16


def _is_ordinary(value: Any, dataclasses: bool = False) -> bool:
    """Whether an object is all attributes: of a class of the user's, which has no way of its own to look them up."""
    kind = type(value)
    if not is_exactly(kind, (type, abc.ABCMeta)) or isinstance(value, torch.nn.Module):
        return False
    if any(getattr(kind, name) is not getattr(object, name) for name in ("__new__", "__getattribute__")):
        return False
    if any(hasattr(kind, name) for name in ("__getattr__", "__next__", "__del__")):
        return False
    if is_dataclass(kind) and not dataclasses:
        return False
    return all(map(_is_users, kind.__mro__)) and all(hasattr(value, name) for name in slots(kind))


def _is_users(kind: type) -> bool:
    if kind is object or kind is abc.ABC:
        return True
    file = file_of(kind)
    return kind in users_classes(kind) and not (is_below_torch(file) or is_standard_library(file) or is_ours(file))
