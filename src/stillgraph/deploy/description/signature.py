"""What goes into an artefact: which tensors of the call it takes, and which it brings along under which names."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.structure import is_key
from stillgraph.program.effects import Effect, SetAttribute, SetCell, SetGlobal, SetSlot
from stillgraph.program.guards import ConstantGuard, IdentityGuard, ObjectGuard, TensorGuard
from stillgraph.program.program import Input, Program
from stillgraph.program.sources import Argument, Attribute, Cell, Global, Item, Memory, Slot, Source
from stillgraph.runtime.native.function_writer import read_source


@dataclass(frozen=True)
class Taken:
    """A tensor of the call that the artefact takes."""

    name: str
    source: Source
    dynamic: frozenset[int]  # dimensions of any size


@dataclass(frozen=True)
class Brought:
    """A tensor (or a number as a 0-d tensor) that the artefact brings along, by its path in the user's module."""

    name: str
    path: str
    kind: str
    source: Source


@dataclass(frozen=True)
class Signature:
    """What an artefact takes from its caller and what it brings along."""

    taken: tuple[Taken, ...]
    brought: tuple[Brought, ...]


def refuse_arrays(program: Program) -> None:
    """Refuse a program that takes an array of numpy's: whoever has the file passes tensors.

    Raises:
        ExportError: it does.
    """
    for each in program.inputs:
        if isinstance(each.source, Memory):
            message = f"the program takes the numpy array {each.source.base} as an input, and a file takes tensors"
            hint = "Pass a tensor and work on that, such as torch.from_numpy(array)."
            raise refuse("SG402", message, location=program.location, hint=hint)


def signature_of(program: Program) -> Signature:
    """The signature of a program as an artefact: unused tensors of the call stay part of it.

    Raises:
        ExportError: it takes an array of numpy's.
    """
    refuse_arrays(program)
    names = {i.source: i.name for i in program.inputs}
    used = set(names.values())
    objects = objects_of(program)
    taken = []
    for guard in program.guards:
        if isinstance(guard, (TensorGuard, ConstantGuard)) and is_argument(guard.source, objects):
            _check_keys(guard.source, program)
        if isinstance(guard, TensorGuard) and is_argument(guard.source, objects):
            name = _parameter(names.get(guard.source) or _path_name(guard.source), used - {names.get(guard.source)})
            used.add(name)
            dims = frozenset(d for d, size in enumerate(guard.shape) if size is None)
            taken.append(Taken(name, guard.source, dims))
    arguments = {t.source for t in taken}
    brought = tuple(_brought(i) for i in program.inputs if i.source not in arguments)
    return Signature(tuple(taken), brought)


def _check_keys(source: Source, program: Program) -> None:
    """Refuse an argument's entry under a key that only the process of the capture has, such as a tensor.

    Raises:
        ExportError: a caller of the file has no such key.
    """
    place: Source = source
    while isinstance(place, (Item, Attribute)):
        if isinstance(place, Item) and not is_key(place.key):
            message = f"an argument has an entry under a key that a file cannot hold, a {type(place.key).__name__}"
            raise refuse("SG402", message, location=program.location, hint="Use strings or numbers as keys.")
        place = place.base


def _brought(given: Input) -> Brought:
    path = path_of(given.source)
    return Brought(given.name, path if path else given.name, given.kind, given.source)


def objects_of(program: Program) -> set[Source]:
    """The arguments that are modules or other objects."""
    tensors = {guard.source for guard in program.guards if isinstance(guard, TensorGuard)}
    return {guard.source for guard in program.guards if isinstance(guard, (IdentityGuard, ObjectGuard))} - tensors


def is_argument(source: Source, objects: set[Source]) -> bool:
    """Whether a source lies in the call's arguments, and not in one of the objects among them."""
    while isinstance(source, (Item, Attribute)):
        if source in objects:
            return False
        source = source.base
    return isinstance(source, Argument) and source not in objects


def path_of(source: Source) -> str | None:
    """The path of an attribute in the module that is the call's receiver, as in its ``state_dict``."""
    parts: list[str] = []
    while isinstance(source, (Slot, Attribute)):
        parts.append(source.name)
        source = source.base
    return ".".join(reversed(parts)) if parts and isinstance(source, Argument) else None


def place_key(source: Source) -> Any:
    """A place, however it is read: an entry of a module's ``_buffers`` and the attribute are one."""
    if isinstance(source, (Slot, Attribute)):
        return ("attribute", place_key(source.base), source.name)
    return ("item", place_key(source.base), source.key) if isinstance(source, Item) else source


def home_of(source: Source, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What tells a place in the user's objects from any other, however a call reaches it; None of one in no object.

    It says so as long as the objects live.
    """
    if isinstance(source, (Slot, Attribute)):
        return ("attribute", id(read_source(source.base, args, kwargs)), source.name)
    if isinstance(source, Cell):
        return ("cell", id(source.cell))
    return ("global", source.module, source.name) if isinstance(source, Global) else None


def written_place(effect: Effect) -> Source | None:
    """The place that an effect gives a new value, if it is one."""
    if isinstance(effect, (SetAttribute, SetSlot)):
        return Attribute(effect.target, effect.name)
    if isinstance(effect, SetCell):
        return effect.target
    return Global(effect.module, effect.name) if isinstance(effect, SetGlobal) else None


def _path_name(source: Source) -> str:
    parts: list[str] = []
    while isinstance(source, (Item, Attribute)):
        parts.append(str(source.key if isinstance(source, Item) else source.name))
        source = source.base
    return "_".join([f"arg{source.key}" if isinstance(source, Argument) else "value", *reversed(parts)])


_TAKEN_BY_TORCH = frozenset({"self", "torch", "device", "inf", "nan", "nonetype"})
"""Names that mean something else in the code that torch generates for a graph."""

_BUILTINS = frozenset(vars(builtins))


def _parameter(text: str, used: Set[str | None]) -> str:
    """A name that torch can give a parameter: like a text, and none that torch may take for one of those in use."""
    name = re.sub(r"\W", "_", text)
    spelled = _as_torch_spells(name)
    if spelled in _TAKEN_BY_TORCH or not name.isidentifier() or keyword.iskeyword(spelled.strip("_")):
        name = f"arg_{name}"
    others = {_as_torch_spells(each) for each in used if each is not None}
    while any(_are_mixed_up(_as_torch_spells(name), other) for other in others):
        name += "_"
    return name


def _as_torch_spells(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "_", name).lower()


def _are_mixed_up(one: str, other: str) -> bool:
    """Whether two names are one in generated code: there a built-in function's gets a number behind it."""
    pairs = ((one, other), (other, one))
    return one == other or any(bare in _BUILTINS and re.fullmatch(rf"{bare}_\d+", each) for bare, each in pairs)


def values_of(signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors of a call that an artefact takes."""
    return [read_source(taken.source, args, kwargs) for taken in signature.taken]
