"""What a program was captured for of which objects are one and which are not, where a file cannot ask at a call."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.signature import is_argument, objects_of, written_place
from stillgraph.deploy.description.whereabouts import Marks, Whereabouts
from stillgraph.passes.regions.regions import outputs, placeholders
from stillgraph.passes.state.sharing import roots_of
from stillgraph.program.guards import AliasGuard, ApartGuard, Guard, IdentityGuard
from stillgraph.program.outputs import Choice, Output, Same, Template
from stillgraph.program.program import Program
from stillgraph.program.sources import Element, Source
from stillgraph.runtime.native.function_writer import read_source

_ONE_OF_A_KIND = (bool, type(None), enum.Enum, type, torch.dtype)
_TOLD_BY_VALUE = (int, float, complex, str, bytes)


def refuse_compared(program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a program that compares an argument by ``is`` with what is not passed to it: a file has no such object.

    Tensors of the caller's are none of the file's.

    Raises:
        ExportError: it does.
    """
    found = {each: read_source(each, args, kwargs) for each in objects_of(program)}
    objects = {each for each, value in found.items() if not isinstance(value, (torch.Tensor, *_TOLD_BY_VALUE))}
    for guard in program.guards:
        sources, same = _compared(guard)
        given = [source for source in sources if is_argument(_holder(source), objects)]
        if not given or (len(given) == len(sources) and not isinstance(guard, IdentityGuard)):
            continue  # a file asks that of what it is given
        for source in given:
            value = read_source(source, args, kwargs)
            of_file = same and isinstance(value, torch.Tensor) and isinstance(guard, AliasGuard)
            if of_file or _is_told_by_value(value):
                message = f"the program was captured for whether {source} is the very object that is found elsewhere"
                hint = "Compare by ==, or give the file an example of its own."
                raise refuse("SG402", message, location=program.location, hint=hint)


def may_be_joined(program: Program, where: Whereabouts) -> list[tuple[Source, Source]]:
    """The places of which a program was captured for two objects where its calls may leave one, or get one back."""
    apart = [_compared(guard)[0] for guard in program.guards if _is_apart(guard)]
    if not apart or not program.effects:
        return []
    after = _After(program, where)
    pairs = itertools.chain.from_iterable(itertools.combinations(sources, 2) for sources in apart)
    written = (pair for pair in pairs if after.is_written(*pair))
    return [(one, two) for one, two in written if not after.found_at(one).isdisjoint(after.found_at(two))]


def refuse_joined(program: Program, where: Whereabouts) -> None:
    """Refuse a program that has such places.

    Raises:
        ExportError: it has.
    """
    for left, right in may_be_joined(program, where):
        message = f"a call may leave one object in {left} and {right}, and the program was captured for two"
        hint = "Give each a tensor of its own, with clone()."
        raise refuse("SG402", message, location=program.location, hint=hint)


class _After:
    """What is found at places after a call: what it may be, as marks of places and nodes of the program's graph."""

    def __init__(self, program: Program, where: Whereabouts) -> None:
        self._where, self._objects = where, objects_of(program)
        self._roots, self._outputs = roots_of(program.graph), outputs(program.graph)
        nodes = zip(placeholders(program.graph), program.inputs, strict=True)
        self._given = {node: where.of(item.source) for node, item in nodes}
        self._values: list[tuple[Marks, Template]] = []
        for effect in program.effects:
            place = written_place(effect)
            if place is not None:
                self._values.append((where.of(place), effect.value))  # type: ignore[union-attr]  # a written place gets one
        self._returned = frozenset(itertools.chain.from_iterable(map(self._made, _results(program))))

    def is_written(self, *sources: Source) -> bool:
        """Whether the call gives one of some places a new value."""
        return any(not marks.isdisjoint(self._where.of(source)) for marks, _ in self._values for source in sources)

    def found_at(self, source: Source) -> Marks:
        """What the next call may find at a place; an argument may be what an earlier call has got or given."""
        marks = self._where.of(source)
        if is_argument(source, self._objects):
            return marks | self._returned
        written = [value for place, value in self._values if not place.isdisjoint(marks)]
        return frozenset().union(*map(self._made, written)) if written else marks

    def _made(self, value: Template) -> Marks:
        match value:
            case Output(index=index) if isinstance(self._outputs[index], fx.Node):
                roots = self._roots.get(self._outputs[index], frozenset())
                return roots.union(*(self._given.get(root, frozenset()) for root in roots))
            case Same(source=source):
                return self._where.of(source)
            case Choice(left=left, right=right):
                return self._made(left) | self._made(right)
        return frozenset()


def _results(program: Program) -> Iterator[Template]:
    pending = [program.result]
    while pending:
        value: Any = pending.pop()
        yield value
        pending += [*getattr(value, "children", ()), *(child for _, child in getattr(value, "attributes", ()))]


def _is_apart(guard: Guard) -> bool:
    return isinstance(guard, ApartGuard) or (isinstance(guard, AliasGuard) and not guard.same)


def _compared(guard: Guard) -> tuple[tuple[Source, ...], bool]:
    """The places that a guard compares by identity, and whether they have one object."""
    match guard:
        case AliasGuard(left=left, right=right, same=same):
            return (left, right), same
        case ApartGuard(sources=sources):
            return sources, False
        case IdentityGuard(source=source):
            return (source,), True
    return (), False


def _holder(source: Source) -> Source:
    """What holds the key that a source is, if it is one."""
    return source.base if isinstance(source, Element) else source


def _is_told_by_value(value: Any) -> bool:
    return isinstance(value, _TOLD_BY_VALUE) and not isinstance(value, _ONE_OF_A_KIND)
