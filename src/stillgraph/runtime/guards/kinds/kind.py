"""What each kind of guard answers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from stillgraph.program.sources import INNER, Source
from stillgraph.runtime.native.function_writer import FunctionWriter

Read = Callable[[Source], Any]
"""Gives what is found at a source now."""

Rank = tuple[int, tuple[int, ...], int]
"""The stage of a guard's check, its place within the stage, its cost."""

G = TypeVar("G")


class Stage(enum.IntEnum):
    """When a guard is checked."""

    ARGUMENTS = 0
    OBJECTS = 1  # from the outside inwards
    RELATIONS = 2  # between several objects
    TENSORS = 3  # inside objects: they are many, and are checked together
    SIZES = 4


class Kind(Generic[G]):
    """What is done with the guards of one class. Each kind of guard is one subclass.

    A kind gives `why`, and either `miss` or, where guards are checked together, `write` (tests/structure/test_guards.py
    asks each for both). What is only read (`inputs.py`) gives `write` alone.

    Attributes:
        cost: the place among the guards on one source; the cheap ones are checked first.
        stage: when a guard is checked that is not on arguments alone.
    """

    cost = 1
    stage = Stage.OBJECTS

    def sources(self, guard: G) -> Sequence[Source]:
        """The places of which a guard speaks."""
        return (guard.source,)  # type: ignore[attr-defined]  # a kind whose guards have none overrides this

    def miss(self, guard: G, writer: FunctionWriter) -> str:
        """The Python expression that is true where a guard does not hold."""
        raise NotImplementedError

    def why(self, guard: G, read: Read) -> str | None:
        """One sentence on a guard that does not hold: what should be and what is. None where it holds."""
        raise NotImplementedError

    def reasons(self, guard: G, read: Read) -> Iterator[str]:
        """A sentence on each fact of a guard that does not hold."""
        sentence = self.why(guard, read)
        if sentence is not None:
            yield sentence

    def write(self, guards: Sequence[G], writer: FunctionWriter) -> None:
        """Write the check of guards that follow each other."""
        for guard in guards:
            writer.lines.append(f"if {self.miss(guard, writer)}: return None")

    def rank(self, guard: G, place: Callable[[Source], tuple[int, ...]]) -> Rank:
        """When a guard is checked. ``place`` says where the check comes to a source."""
        sources = self.sources(guard)
        if all(map(is_outermost, sources)):
            return Stage.ARGUMENTS, (), self.cost
        if self.stage is Stage.OBJECTS:
            return self.stage, place(sources[0]), self.cost
        return self.stage, (), 0

    def weakened(self, guard: G) -> G:
        """The same guard, without a reference that keeps a user's object alive."""
        return guard


def is_outermost(source: Source) -> bool:
    """Whether a source begins at no other."""
    return not isinstance(source, INNER)
