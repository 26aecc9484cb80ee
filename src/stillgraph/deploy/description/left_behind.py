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
from stillgraph.deploy.description.signature import home_of, is_argument, objects_of, place_key, written_place
from stillgraph.deploy.description.uses import is_only_written, is_written_first
from stillgraph.passes.regions.regions import placeholders
from stillgraph.program.effects import (
    Advance,
    DeleteAttribute,
    Effect,
    ExtendContents,
    SetAttribute,
    SetContents,
    SetItem,
    SetPersistence,
    SetSlot,
)
from stillgraph.program.facts.module_tables import NOT_PERSISTENT
from stillgraph.program.guards import (
    AliasGuard,
    BytesGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    FactGuard,
    KeysGuard,
    LengthGuard,
    MissingGuard,
    NoAttributeGuard,
    TensorGuard,
    UnsetGuard,
)
from stillgraph.program.outputs import Constant, Container, Instance, Repeated, Same, Template, may_be_absent
from stillgraph.program.program import Program
from stillgraph.program.sources import Attribute, Item, Source

_HINT = "Keep it in a buffer of one dtype and size or in a number, or take it as an argument and return it."
_READING = (
    BytesGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    FactGuard,
    KeysGuard,
    LengthGuard,
    TensorGuard,
    UnsetGuard,
)
"""The guards on what an object holds; those on what it is stand where it is only written, too."""


def check_left_behind(program: Program, effects: Iterable[Effect]) -> None:
    """Refuse a program whose file would be wrong without some of its effects.

    Args:
        program: as captured, with a result of one structure.
        effects: of the program, those that the file does not carry out.

    Raises:
        ExportError: the program reads at its next call, or returns, what such an effect writes.
    """
    objects = objects_of(program)
    for effect in effects:
        place = _place(effect)
        if is_argument(place, objects):
            if any(_meet(given, place) for given in _handed_back(program.result)):
                message = f"the program writes to {place} and returns it, and a file gives back arguments as they were"
                hint = "Return a new list, dict or object with what is to be given, or save as .py."
                raise refuse("SG402", message, location=program.location, hint=hint)
        elif _is_unread(program, effect, place):
            continue
        elif any(_within(source, place) for source in _read(program, effect, place)):
            message = f"a call changes {place}, which the program was captured for, and a file cannot keep that"
            raise refuse("SG402", message, location=program.location, hint=_HINT)


def refuse_shared(program: Program) -> None:
    """Refuse a program that gives a place another tensor while a second place keeps the first: a file has one for both.

    Raises:
        ExportError: it does.
    """
    written = {place_key(place): place for effect in program.effects if (place := written_place(effect)) is not None}
    read = {place_key(given.source) for given in program.inputs}
    for guard in (each for each in program.guards if isinstance(each, AliasGuard) and each.same):
        for place, other in ((guard.left, guard.right), (guard.right, guard.left)):
            one, two = place_key(place), place_key(other)
            if one in written and two not in written and not read.isdisjoint((one, two)):
                message = f"the program gives {place} another tensor, and {other} keeps the one that both have"
                hint = "Give each a tensor of its own, with clone(), before the file is saved."
                raise refuse("SG402", message, location=program.location, hint=hint)


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
    """Refuse a program that lets an object have an attribute on some paths only.

    Raises:
        ExportError: it does.
    """
    for effect in itertools.chain(program.effects, *program.midway):
        if isinstance(effect, (SetAttribute, SetSlot)) and may_be_absent(effect.value):
            place = f"{effect.target}.{effect.name}"
            message = f"the path of a call decides whether {place} is there afterwards, and a file cannot keep that"
            hint = f"Let the object have '{effect.name}' from the beginning, of one kind on all paths, or return it."
            raise refuse("SG402", message, location=program.location, hint=hint)


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
    for name, effects in left.items():
        for effect in effects:
            place = _place(effect)
            home = home_of(place, entries[name].args, entries[name].kwargs)
            for other, entry in entries.items():
                if home is None or other == name or (_is_of_contents(effect) and is_only_written(entry.program, place)):
                    continue
                if any(home in _homes(source, entry) for source in _read(entry.program, effect, place)):
                    message = f"{name!r} changes {place}, which {other!r} was captured for, and a file cannot keep that"
                    raise refuse("SG402", message, location=entry.program.location, hint=_HINT)


def _is_unread(program: Program, effect: Effect, place: Source) -> bool:
    """Whether the source says that nothing is read of what an effect changes, though guards stand there."""
    return is_only_written(program, place) if _is_of_contents(effect) else is_written_first(program, place)


def _is_of_contents(effect: Effect) -> bool:
    """Whether an effect is on what a container holds: guards on that stand where it is only written, too."""
    return isinstance(effect, (SetContents, ExtendContents, SetItem))


def _homes(source: Source, entry: Entry) -> Iterator[Any]:
    """The places in the user's objects that a source is, and lies in."""
    current: Any = source
    while current is not None:
        yield home_of(current, entry.args, entry.kwargs)
        current = getattr(current, "base", None)


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


def _read(program: Program, effect: Effect, place: Source) -> Iterator[Source]:
    """What the program found at its places, as far as the effect does not leave just that."""
    nodes = zip(program.inputs, placeholders(program.graph), strict=True)
    yield from (given.source for given, node in nodes if node.users)
    value = getattr(effect, "value", None)
    for guard in program.guards:
        if isinstance(guard, _READING) and not _stays(guard, value, place):
            yield guard.source
        elif isinstance(guard, NoAttributeGuard):
            yield Attribute(guard.source, guard.name)
        elif isinstance(guard, MissingGuard) and isinstance(guard.source, Attribute):
            yield from (Attribute(guard.source.base, name) for name in guard.names)


def _stays(guard: Any, value: Any, place: Source) -> bool:
    """Whether a place is given the very constant that the program found there."""
    return (
        isinstance(guard, ConstantGuard)
        and isinstance(value, Constant)
        and place_key(guard.source) == place_key(place)
        and type(value.value) is type(guard.value)
        and repr(value.value) == repr(guard.value)
    )


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
