"""What is only read: an input of a program, or a tensor that is checked later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stillgraph.program.sources import Source
from stillgraph.runtime.guards.kinds.kind import Kind
from stillgraph.runtime.native.function_writer import FunctionWriter


@dataclass(frozen=True)
class Fetch:
    """Stands among the guards for a source that is only read."""

    source: Source


class OfFetches(Kind[Fetch]):
    """Nothing is checked; what is found is at hand for what follows."""

    cost = 4

    def write(self, guards: Sequence[Fetch], writer: FunctionWriter) -> None:
        for guard in guards:
            writer.read(guard.source)
