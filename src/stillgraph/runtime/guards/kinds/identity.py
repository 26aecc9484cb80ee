"""Guards on which object a value is: this very one, the same as another, apart from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stillgraph.program.guards import AliasGuard, ApartGuard, IdentityGuard, MemoryGuard, SeparateGuard
from stillgraph.program.sources import Source
from stillgraph.program.upcoming import are_separate
from stillgraph.runtime.guards.kinds.kind import Kind, Rank, Read, Stage
from stillgraph.runtime.guards.weak import WeakObject, weak_object
from stillgraph.runtime.guards.words import shown
from stillgraph.runtime.native.function_writer import FunctionWriter
from stillgraph.runtime.native.overlap import overlap


@dataclass(frozen=True, eq=False)
class WeakIdentityGuard(IdentityGuard):
    """An `IdentityGuard` whose ``expected`` is a `WeakObject`."""

    def __str__(self) -> str:
        return f"{self.source} is the same {self.expected.type.__name__}"


class OfIdentity(Kind[IdentityGuard]):
    """A value is this very object."""

    def miss(self, guard: IdentityGuard, writer: FunctionWriter) -> str:
        value, expected = writer.read(guard.source), self.weakened(guard).expected
        if not isinstance(expected, WeakObject):
            return f"{value} is not {writer.constant(expected)}"
        # A dead reference gives None, which must not match a value that is None.
        return f"{value} is None or {writer.constant(expected.reference)}() is not {value}"

    def why(self, guard: IdentityGuard, read: Read) -> str | None:
        value, expected = read(guard.source), self.weakened(guard).expected
        if isinstance(expected, WeakObject):
            holds, kind = expected.matches(value), expected.type
        else:
            holds, kind = value is expected, type(expected)
        return None if holds else f"{guard.source} should be the same {kind.__name__} as before, but is {shown(value)}"

    def weakened(self, guard: IdentityGuard) -> IdentityGuard:
        if isinstance(guard, WeakIdentityGuard):
            return guard
        weak = weak_object(guard.expected)
        return WeakIdentityGuard(guard.source, weak) if isinstance(weak, WeakObject) else guard


class OfAliases(Kind[AliasGuard]):
    """Two places hold one object, or two."""

    stage = Stage.RELATIONS

    def sources(self, guard: AliasGuard) -> Sequence[Source]:
        return guard.left, guard.right

    def miss(self, guard: AliasGuard, writer: FunctionWriter) -> str:
        return f"{writer.read(guard.left)} {'is not' if guard.same else 'is'} {writer.read(guard.right)}"

    def why(self, guard: AliasGuard, read: Read) -> str | None:
        if (read(guard.left) is read(guard.right)) is guard.same:
            return None
        wanted, found = ("the same object", "different objects")[:: 1 if guard.same else -1]
        return f"{guard.left} and {guard.right} should be {wanted}, but are {found}"


class OfWhatIsApart(Kind[ApartGuard]):
    """Some places hold a different object each."""

    stage = Stage.RELATIONS

    def sources(self, guard: ApartGuard) -> Sequence[Source]:
        return guard.sources

    def miss(self, guard: ApartGuard, writer: FunctionWriter) -> str:
        ids = ", ".join([f"id({writer.read(source)})" for source in guard.sources])
        return f"len({{{ids}}}) != {len(guard.sources)}"

    def why(self, guard: ApartGuard, read: Read) -> str | None:
        seen: dict[int, Source] = {}
        for source in guard.sources:
            first = seen.setdefault(id(read(source)), source)
            if first is not source:
                return f"{first} and {source} should be different objects, but are the same object"
        return None


class OfMemory(Kind[MemoryGuard]):
    """Tensors share no memory."""

    def sources(self, guard: MemoryGuard) -> Sequence[Source]:
        return guard.tensors

    def rank(self, guard: MemoryGuard, place: object) -> Rank:
        return Stage.RELATIONS, (), 1

    def miss(self, guard: MemoryGuard, writer: FunctionWriter) -> str:
        return f"{writer.constant(overlap)}([{', '.join(map(writer.read, guard.tensors))}])"

    def why(self, guard: MemoryGuard, read: Read) -> str | None:
        return f"{guard}: this should hold, but does not" if overlap([*map(read, guard.tensors)]) else None


class OfWhatIsSeparate(Kind[SeparateGuard]):
    """Iterators do not draw from each other, nor from some containers."""

    def sources(self, guard: SeparateGuard) -> Sequence[Source]:
        return *guard.iterators, *guard.containers

    def rank(self, guard: SeparateGuard, place: object) -> Rank:
        return Stage.RELATIONS, (), 1

    def miss(self, guard: SeparateGuard, writer: FunctionWriter) -> str:
        iterators, containers = (", ".join(map(writer.read, side)) for side in (guard.iterators, guard.containers))
        return f"not {writer.constant(are_separate)}([{iterators}], [{containers}])"

    def why(self, guard: SeparateGuard, read: Read) -> str | None:
        apart = are_separate([*map(read, guard.iterators)], [*map(read, guard.containers)])
        return None if apart else f"{guard}: this should hold, but does not"
