"""What a call leaves in the user's objects and a file cannot keep.

It is a note, unless the file would be wrong about it: where the next call finds another attribute, or another list or
dict, than the program was captured for, and where the result shows it. What a program only writes to is a note.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.identities import refuse_compared, refuse_joined
from stillgraph.deploy.description.signature import is_argument, objects_of, place_key, written_place
from stillgraph.deploy.description.uses import is_only_written, is_written_first
from stillgraph.deploy.description.whereabouts import Marks, Whereabouts
from stillgraph.passes.regions.regions import all_regions, placeholders
from stillgraph.program.effects import (
    Advance,
    DeleteAttribute,
    Effect,
    ExtendContents,
    SetAttribute,
    SetCell,
    SetContents,
    SetGlobal,
    SetItem,
    SetPersistence,
    SetSlot,
)
from stillgraph.program.facts.module_tables import NOT_PERSISTENT
from stillgraph.program.graphs import arguments
from stillgraph.program.guards import (
    AliasGuard,
    BytesGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    FactGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MissingGuard,
    NoAttributeGuard,
    TensorGuard,
    UnsetGuard,
)
from stillgraph.program.operations import unbound
from stillgraph.program.outputs import (
    Constant,
    Container,
    Instance,
    Repeated,
    Same,
    Template,
    may_be_absent,
)
from stillgraph.program.program import Program
from stillgraph.program.sources import Attribute, Cell, Item, Source

_HINT = "Keep it in a buffer of one dtype and size or in a number, or take it as an argument and return it."
_OF_CONTENTS = (BytesGuard, ContentsGuard, ElementsGuard, KeysGuard, LengthGuard)
"""The guards on what a container holds."""

_READING = (*_OF_CONTENTS, ConstantGuard, FactGuard, TensorGuard)
"""The guards on what an object holds; those on its type stand where it is only written, too."""


def check_left_behind(program: Program, left: Iterable[Effect], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a program whose file would be wrong at its next call: what it was captured for must hold after each.

    Args:
        program: as captured, with a result of one structure.
        left: those of its effects that the file does not carry out.
        args, kwargs: the example call.

    Raises:
        ExportError: the program was captured for what one of its effects changes, or reads or returns what one changes
            that the file does not carry out.
    """
    objects, where, lost = objects_of(program), Whereabouts(args, kwargs), _places_of(left)
    refuse_compared(program, args, kwargs)
    refuse_joined(program, where)
    for effect in program.effects:
        place = _place(effect)
        kept = place_key(place) not in lost
        if is_argument(place, objects):
            if not kept and any(_meet(given, place) for given in _handed_back(program.result)):
                message = f"the program writes to {place} and returns it, and a file gives back arguments as they were"
                hint = "Return a new list, dict or object with what is to be given, or save as .py."
                raise refuse("SG402", message, location=program.location, hint=hint)
        elif _is_unread(program, effect, place):
            continue
        elif _is_relied_on(program, effect, kept, where, where.changed(effect)):
            message = f"a call changes {place}, which the program was captured for, and a file cannot keep that"
            raise refuse("SG402", message, location=program.location, hint=_HINT)


def refuse_shared(program: Program) -> None:
    """Refuse a program that gives one of two places that have the same tensor another one: a file has one for both.

    Raises:
        ExportError: it does.
    """
    written = _values_of(program)
    read = {place_key(given.source) for given in program.inputs}
    for guard in (each for each in program.guards if isinstance(each, AliasGuard) and each.same):
        one, two = place_key(guard.left), place_key(guard.right)
        if written.get(one) != written.get(two) and not read.isdisjoint((one, two)):
            place, other = (guard.left, guard.right) if one in written else (guard.right, guard.left)
            left = "a third one, where both had one" if place_key(other) in written else "keeps the one that both have"
            message = f"the program gives {place} another tensor, and {other} {left}"
            hint = "Give each a tensor of its own, with clone(), before the file is saved."
            raise refuse("SG402", message, location=program.location, hint=hint)


def _values_of(program: Program) -> dict[Any, Template]:
    """What the program gives to places, by their keys."""
    effects: Iterator[tuple[Source | None, Any]] = ((written_place(effect), effect) for effect in program.effects)
    return {place_key(place): effect.value for place, effect in effects if place is not None}


def _places_of(effects: Iterable[Effect]) -> set[Any]:
    return {place_key(_place(effect)) for effect in effects}


def refuse_advanced(program: Program) -> None:
    """Refuse a program that draws from an iterator of the caller's: what it gives next is in no file.

    Raises:
        ExportError: it does.
    """
    effects = itertools.chain(program.effects, *program.midway)
    advanced = next((effect.target for effect in effects if isinstance(effect, Advance)), None)
    if advanced is not None:
        message = f"each call draws from the iterator {advanced}, and a file cannot"
        raise refuse("SG402", message, location=program.location, hint="Take what it gives as an argument.")


def refuse_absent(program: Program) -> None:
    """Refuse a program that lets an object have an attribute, or a variable a value, on some paths only.

    Raises:
        ExportError: it does.
    """
    for effect in _deleting(program):
        place = _place(effect)
        message = f"the path of a call decides whether {place} is there afterwards, and a file cannot keep that"
        name = getattr(place, "name", place)
        hint = f"Let '{name}' be there from the beginning, of one kind on all paths, or return it."
        raise refuse("SG402", message, location=program.location, hint=hint)


def _deleting(program: Program) -> Iterator[Effect]:
    """The effects that take away what is in a place on some paths."""
    for effect in itertools.chain(program.effects, *program.midway):
        if isinstance(effect, (SetAttribute, SetSlot)) and may_be_absent(effect.value):
            yield effect
    nodes = itertools.chain.from_iterable(module.graph.nodes for module in all_regions(program.graph))
    deleted = {arguments(node)[0] for node in nodes if node.target is unbound}
    for effect in program.effects:
        match effect:
            case SetGlobal(name=name) if f"global {name}" in deleted:
                yield effect
            case SetCell(target=Cell(name=name)) if name in deleted:
                yield effect


def without_persistence(program: Program) -> Program:
    """A program without what it does to whether ``state_dict`` has a buffer: a file's state is its own."""
    effects = tuple(effect for effect in program.effects if not isinstance(effect, SetPersistence))
    if len(effects) == len(program.effects):
        return program
    guards = (each for each in program.guards if getattr(getattr(each, "source", None), "name", "") != NOT_PERSISTENT)
    return replace(program, effects=effects, guards=tuple(guards))


def check_left_to_others(entries: Mapping[str, Entry], left: Mapping[str, Sequence[Effect]]) -> None:
    """Refuse entries of which one reads what another writes and the file does not keep.

    Args:
        entries: by name.
        left: by entry the effects that the file does not carry out.

    Raises:
        ExportError: there is such an effect.
    """
    wheres = {name: Whereabouts(entry.args, entry.kwargs) for name, entry in entries.items()}
    for name, entry in entries.items():
        lost = _places_of(left[name])
        for effect in entry.program.effects:
            place = _place(effect)
            kept, changed = place_key(place) not in lost, wheres[name].changed(effect) - {place_key(place)}
            for other, reader in entries.items():
                if other == name or (_is_of_contents(effect) and is_only_written(reader.program, place)):
                    continue
                if _is_relied_on(reader.program, effect, kept, wheres[other], changed):
                    message = f"{name!r} changes {place}, which {other!r} was captured for, and a file cannot keep that"
                    raise refuse("SG402", message, location=reader.program.location, hint=_HINT)


def _is_unread(program: Program, effect: Effect, place: Source) -> bool:
    """Whether the source says that nothing is read of what an effect changes, though guards stand there."""
    return is_only_written(program, place) if _is_of_contents(effect) else is_written_first(program, place)


def _is_of_contents(effect: Effect) -> bool:
    """Whether an effect is on what a container holds: guards on that stand where it is only written, too."""
    return isinstance(effect, (SetContents, ExtendContents, SetItem))


def _place(effect: Effect) -> Source:
    """What an effect changes."""
    written = written_place(effect)
    if written is not None:
        return written
    if isinstance(effect, DeleteAttribute):
        return Attribute(effect.target, effect.name)
    if isinstance(effect, SetItem):
        return Item(effect.target, effect.key)
    target: Source = effect.target  # type: ignore[union-attr]  # all but `SetGlobal` have one, and that is written
    return target


def _is_relied_on(program: Program, effect: Effect, kept: bool, where: Whereabouts, changed: Marks) -> bool:
    """Whether a program reads, or was captured for, what an effect changes, as far as that does not leave just that.

    Args:
        kept: whether the file carries the effect out: then what the program reads as an input is as it is to be.
        changed: what the effect changes.
    """
    nodes = zip(program.inputs, placeholders(program.graph), strict=True)
    read = [] if kept else [given.source for given, node in nodes if node.users]
    written = _values_of(program)
    guards = (guard for guard in program.guards if not _become_one(guard, written))
    found = itertools.chain(read, *(_relied_on(guard, effect, kept, where, changed) for guard in guards))
    return any(not changed.isdisjoint(where.way(source)) for source in found)


def _relied_on(guard: Guard, effect: Effect, kept: bool, where: Whereabouts, changed: Marks) -> Iterator[Source]:
    """The places of a guard that may not hold any more where an effect changes them."""
    value = getattr(effect, "value", None)
    match guard:
        case TensorGuard() | FactGuard() if kept:
            return  # the file gives a place tensors of one kind alone
        case ConstantGuard() | IdentityGuard() if _stays(guard, effect, where, changed):
            return
        case NoAttributeGuard(source=source, name=name):
            yield Attribute(source, name)
        case MissingGuard(source=Attribute(base=base), names=names):
            yield from (Attribute(base, name) for name in names)
        case IdentityGuard(source=source) | UnsetGuard(source=source):
            yield source
        case AliasGuard(left=left, right=right, same=True) if not _are_one(value, guard, where):
            yield from (left, right)
        case _ if isinstance(guard, _READING):
            yield Item(guard.source, None) if isinstance(guard, _OF_CONTENTS) else guard.source  # any of what it holds


def _become_one(guard: Guard, written: Mapping[Any, Template]) -> bool:
    """Whether two places that have one object are both given one other."""
    if not isinstance(guard, AliasGuard):
        return False
    left = written.get(place_key(guard.left))
    return left is not None and left == written.get(place_key(guard.right))


def _stays(guard: ConstantGuard | IdentityGuard, effect: Effect, where: Whereabouts, changed: Marks) -> bool:
    """Whether a place is given the very constant that the program found there."""
    value = getattr(effect, "value", None)
    if not isinstance(value, Constant) or changed.isdisjoint(where.of(guard.source)):
        return False
    if isinstance(guard, IdentityGuard):
        return value.value is guard.expected
    return type(value.value) is type(guard.value) and repr(value.value) == repr(guard.value)


def _are_one(value: Any, guard: AliasGuard, where: Whereabouts) -> bool:
    """Whether what a place is given is what both places have."""
    both = where.of(guard.left) | where.of(guard.right)
    return isinstance(value, Same) and not both.isdisjoint(where.of(value.source))


def _handed_back(template: Template) -> Iterator[Source]:
    """The objects of the caller's in a result."""
    match template:
        case Same(source=source):
            yield source
        case Container(children=children):
            for child in children:
                yield from _handed_back(child)
        case Instance(attributes=attributes):
            for _, child in attributes:
                yield from _handed_back(child)
        case Repeated(element=element):
            yield from _handed_back(element)


def _meet(one: Source, other: Source) -> bool:
    return _within(one, other) or _within(other, one)


def _within(source: Source, place: Source) -> bool:
    """Whether a source is a place, or lies in it."""
    key, current = place_key(place), source
    while place_key(current) != key:
        base = getattr(current, "base", None)
        if base is None:
            return False
        current = base
    return True
