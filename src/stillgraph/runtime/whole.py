"""Running a program as one compiled graph: loops and branches inside it, no Python in between. Inference only."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stillgraph.passes.whole_graph import Result, Whole, lower_whole
from stillgraph.program.program import Program
from stillgraph.runtime.native import Compile, lower

Run = Callable[..., tuple[Any, ...]]


def compile_whole(program: Program, compile: Compile) -> Run | None:
    """A program as one graph compiled by a backend.

    Gradients must be off when the result is called: torch's ``while_loop`` differentiates wrongly where a loop runs no
    iteration.

    Args:
        program: what to run.
        compile: the backend.

    Returns:
        A function of the program's inputs that gives the graph's outputs, like that of `runtime.native.lower`; it is
        compiled at its first call, and where the backend fails the native lowering takes its place. None where the
        native lowering is the right one from the start.
    """
    whole = lower_whole(program)
    return None if whole is None else _Whole(program, whole, compile)


class _Whole:
    def __init__(self, program: Program, whole: Whole, compile: Compile) -> None:
        self._program = program
        self._whole = whole
        self._compile = compile
        self._run: Run | None = None

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("a program compiled as a whole runs without gradients only")
        if self._run is None:
            self._run = self._compiled(inputs)
        return self._run(*inputs)

    def _compiled(self, inputs: tuple[Any, ...]) -> Run:
        try:
            function = self._compile(self._whole.module, self._tensors(inputs))
        except Exception:  # whatever a backend cannot do in one piece, it may still do in several
            return lower(self._program, self._compile).run
        results = self._whole.results

        def run(*inputs: Any) -> tuple[Any, ...]:
            given = function(*self._tensors(inputs))
            return tuple([_result(result, given, inputs) for result in results])

        return run

    def _tensors(self, inputs: tuple[Any, ...]) -> list[Any]:
        if not self._whole.number_inputs:
            return list(inputs)
        tensors = list(inputs)
        for index, dtype in self._whole.number_inputs:
            tensors[index] = torch.tensor(inputs[index], dtype=dtype)
        return tensors


def _result(result: Result, given: Any, inputs: tuple[Any, ...]) -> Any:
    if result.output is not None:
        value = given[result.output]
        return value if result.kind is None else result.kind(value.item())
    return result.constant if result.input is None else inputs[result.input]
