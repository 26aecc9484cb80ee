"""How the values of a call are passed to a part of its plan: learned from the programs that did not fit."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch

from stillgraph.api.varying import changed_sizes
from stillgraph.bytecode.machine.parcels import is_opaque, is_plain
from stillgraph.core.parcel import Parcel, is_parcels, opened, parcel
from stillgraph.program.guards import (
    AliasGuard,
    ConstantGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    TensorGuard,
    TypeGuard,
)
from stillgraph.program.sources import Argument, Attribute, Called, Cell, Element, Global, Item, Slot, Source
from stillgraph.runtime.calls.cache import CapturedCall
from stillgraph.runtime.guards.explaining import failing
from stillgraph.runtime.guards.kinds.identity import WeakIdentityGuard
from stillgraph.trace.sources.kinds_of_objects import is_opened_by_name
from stillgraph.trace.torch_rules.fake_execution import has_no_fake

_OF_IDENTITY = (IdentityGuard, WeakIdentityGuard)
_FEW = 2
"""So many programs for objects that are each another one tell that every call makes its own."""

_MOST_TENSORS = 64
"""So many tensors a container may hold of which each is guarded by itself, with open sizes."""


@dataclass
class Passing:
    """How a part takes its values.

    Attributes:
        packs: the arguments, by position or name, that are passed so that they are guarded where they are read.
        closed: the names of parcels that programs do not open, for what is in them is another in each call.
        unread: the names of globals, attributes and free variables that they do not read, for the same reason.
        spread: the arguments that are passed in no parcel: lists, tuples and dicts in which sizes of tensors are open.
        kept: those that are not, for they differ in more than sizes.
    """

    packs: set[int | str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    spread: set[int | str] = field(default_factory=set)
    kept: set[int | str] = field(default_factory=set)

    def packed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call as the part takes them."""
        known: dict[int, Parcel] = {}

        def passed(key: int | str, value: Any) -> Any:
            if key not in self.packs or is_plain(value) or type(value) is Parcel:
                return value
            return known.setdefault(id(value), parcel(key, value))

        return tuple([passed(*each) for each in enumerate(args)]), {name: passed(name, kwargs[name]) for name in kwargs}

    def spread_out(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of a part in the midst of a call, without the parcels around lists of which sizes are open."""
        return [
            opened(value) if key in self.spread and _holds_tensors(opened(value)) else value
            for key, value in enumerate(args)
        ]

    def learn_to_spread(
        self,
        calls: Sequence[CapturedCall],
        args: tuple[Any, ...],
        open_sizes: Mapping[Source, AbstractSet[int]],
        most: int,
    ) -> None:
        """Take containers of tensors out of their parcels where sizes in them are open, and little else differs.

        Args:
            calls: what was captured.
            args: those of a call that no program fits.
            open_sizes: the dimensions that are left open.
            most: the programs that may differ in more than sizes.
        """
        found: collections.Counter[int | str] = collections.Counter()
        for call in calls:
            differing = [guard for guard, _ in failing(call.program.guards, args, {})]
            others = (each for each in differing if not (type(each) is TensorGuard and changed_sizes(each, args, {})))
            keys = {root.key for each in others if (root := _root(getattr(each, "source", None))) is not None}
            found.update(key for key in keys if type(key) is int and type(args[key]) is not Parcel)
        self.kept |= {key for key, times in found.items() if key in self.spread and times >= most}
        held = {_root(source) for source in open_sizes if isinstance(source, Item)}
        self.spread = {root.key for root in held if root is not None} - self.kept

    def learn_to_pack(
        self, calls: Sequence[CapturedCall], args: tuple[Any, ...], kwargs: dict[str, Any], most: int
    ) -> None:
        """Pack the arguments that only Python can work with, and those that are the reason why no program is found.

        Objects are, where they are others than before; anything else, where ``most`` programs do not agree with it.
        """
        given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        self.packs |= {key for key, value in given if _is_pythons(opened(value))}
        found: collections.Counter[int | str] = collections.Counter()
        for call in calls:
            keys: set[int | str] = set()
            for guard, _ in failing(call.program.guards, args, kwargs):
                source = getattr(guard, "source", None)
                root = _root(source)
                if isinstance(guard, _OF_IDENTITY) and root is not None:
                    self.packs.add(root.key)
                elif root is not None and not isinstance(guard, TensorGuard) and _named_step(source) is None:
                    keys.add(root.key)
            found.update(keys)
        self.packs |= {key for key, times in found.items() if times >= most}

    def learn_to_close(
        self,
        calls: Sequence[CapturedCall],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        most: int,
        numbers: AbstractSet[Source] = frozenset(),
        known: AbstractSet[str] = frozenset(),
    ) -> bool:
        """Leave to Python on what ``most`` programs, or of objects that a parcel holds a few, do not agree with a call.

        Args:
            calls: what was captured.
            args: those of the call, by position.
            kwargs: those by keyword.
            most: how many programs.
            numbers: where those are that will be inputs of the next program, and count for nothing.
            known: the names of parcels with what has kept changing elsewhere in the same call: once is enough.

        Returns:
            Whether there is anything new.
        """
        passed: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        given: dict[Source, Parcel] = {Argument(key): value for key, value in passed if type(value) is Parcel}
        found: collections.Counter[tuple[bool, str]] = collections.Counter()
        for call in calls:
            failed: dict[tuple[bool, str], int] = {}
            free = {each.source: each.code.co_freevars for each in call.program.guards if type(each) is FunctionGuard}
            for guard, _ in failing(call.program.guards, args, kwargs):
                place = _place_of(guard)
                of_variable = isinstance(guard, TensorGuard) and not isinstance(place, Item)
                step = None if of_variable else _named_step(place, free)
                if step is None or place in numbers:
                    continue
                held = getattr(given.get(getattr(step, "base", step)), "name", None) == step.name
                weight = most if held and _is_anew(guard) else 1 if isinstance(guard, TensorGuard) else _FEW
                if held and step.name in known and not _is_number(guard):
                    weight = most * _FEW
                failed[held, step.name] = max(weight, failed.get((held, step.name), 0))
            found.update(failed)
        before = len(self.closed) + len(self.unread)
        for (held, name), weight in found.items():
            if weight >= most * _FEW:
                (self.closed if held else self.unread).add(name)
        return len(self.closed) + len(self.unread) > before


def out_of_parcel(source: Source) -> Source:
    """Where something is when no parcel is around an argument."""
    if isinstance(source, Attribute) and isinstance(source.base, Argument) and is_parcels(source.name):
        return source.base
    return replace(source, base=out_of_parcel(source.base)) if isinstance(source, (Item, Attribute)) else source


def unpacking(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arguments that may be packed."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return original(*map(opened, args), **{name: opened(value) for name, value in kwargs.items()})

    return call


def _root(source: Source | None) -> Argument | None:
    while not isinstance(source, Argument):
        source = getattr(source, "base", None)
        if source is None:
            return None
    return source


def _named_step(
    source: Source | None, free: Mapping[Source, Sequence[str]] = MappingProxyType({})
) -> Attribute | Slot | Global | Cell | None:
    """The innermost step of a path that has a name: an attribute, a global, a free variable, or what a parcel holds.

    ``free`` are the names of the free variables of functions, by their paths.
    """
    while isinstance(source, (Item, Element, Called)) or (isinstance(source, Attribute) and source.name in _PASSED_BY):
        match source:
            case Item(base=Attribute(base=function, name="__closure__"), key=number) if function in free:
                return Cell(free[function][number], None)
            case Item(base=Attribute(base=owner, name="__dict__"), key=str(name)):
                return Attribute(owner, name)
        source = source.base
    return source if isinstance(source, (Attribute, Slot, Global, Cell)) else None


_PASSED_BY = frozenset({"__func__", "__self__", "cell_contents"})
"""What a bound method is made of, and what a cell holds: what is another in each call is the method or variable."""


def _place_of(guard: Guard) -> Source | None:
    """What is another thing than before where a guard does not hold: of two places, the element of a container."""
    if isinstance(guard, AliasGuard):
        return next((place for place in (guard.right, guard.left) if isinstance(place, Item)), None)
    return getattr(guard, "source", None)


def _is_number(guard: Guard) -> bool:
    """Whether a guard is on a number, which may become an input."""
    return isinstance(guard, ConstantGuard) and type(guard.value) in (int, float)


def _is_anew(guard: Guard) -> bool:
    """Whether what does not agree with a guard is another object than before, rather than another value."""
    is_local = isinstance(guard, TypeGuard) and "<locals>" in guard.type.__qualname__
    return is_local or isinstance(guard, _OF_IDENTITY)


def _holds_tensors(value: Any, depth: int = 2) -> bool:
    """Whether a value is a container of tensors and of nothing else, or of a few such containers."""
    if type(value) not in (list, tuple, dict) or len(value) > _MOST_TENSORS:
        return False
    held = value.values() if type(value) is dict else value
    return all(type(each) is torch.Tensor or (depth > 1 and _holds_tensors(each, depth - 1)) for each in held)


def _is_pythons(value: Any) -> bool:
    """Whether only Python can work with an argument, or hardly anything else: a file, a lock, a quantized tensor."""
    if is_opaque(value) or is_opened_by_name(value):
        return True
    if isinstance(value, torch.Tensor) and has_no_fake(value):
        return True
    return hasattr(type(value), "__exit__") and not isinstance(value, (torch.Tensor, torch.nn.Module))
