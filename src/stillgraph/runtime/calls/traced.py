"""A program as a callable of its own, without guards: what `trace` returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.program.program import Program
from stillgraph.runtime.guards.explaining import explain_miss
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.results import compile_result
from stillgraph.runtime.native.tracebacks import presenting


class TracedFunction:
    """A traced program; call it with arguments like those it was traced with.

    Attributes:
        program: the program.
        original: what was traced.
    """

    def __init__(self, original: Callable[..., Any], program: Program, run: Callable[..., Sequence[Any]]) -> None:
        self.original = original
        self.program = program
        self._run = run
        self._finish = compile_result(program.result, program.effects)

    @presenting
    def __call__(self, *args: Any) -> Any:
        """Run the recorded operations on other data.

        Raises:
            ValueError: the arguments differ in kind, shape or dtype from those it was traced with.
        """
        reason = explain_miss(self.program.guards[1:], args, {})
        if reason is not None:
            raise ValueError(f"{self.program.name} was traced with other arguments: {reason}")
        inputs = [read_source(item.source, args, {}) for item in self.program.inputs]
        return self._finish(self._run(*inputs), args, {})

    def __repr__(self) -> str:
        return f"<traced {self.program.name}>"
