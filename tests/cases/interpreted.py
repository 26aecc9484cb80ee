"""Static functions whose programs are not lowered but interpreted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import nn

import stillgraph as sg
from stillgraph.api.parts import Part
from stillgraph.program.interpreter import interpret
from stillgraph.program.program import Program


def _compile_program(program: Program, backend: Any) -> Any:
    return lambda *inputs: interpret(program, inputs)


def to_interpreted(target: Any, input_spec: list[sg.InputSpec] | None = None) -> Any:
    """A static function, all of which is as usual but what runs its programs."""
    static = sg.to_static(target, input_spec=input_spec, backend="eager")
    held = static.forward if isinstance(static, nn.Module) else static
    getattr(held, "__func__", held)._compile_program = _compile_program
    return static


@contextlib.contextmanager
def interpreted_segments(tell: Callable[[Program, tuple[Any, ...]], None] | None = None) -> Iterator[None]:
    """Inside, the segments of static functions are not lowered but interpreted.

    Args:
        tell: is told of each program that is called, and of its inputs.
    """

    def compiled(part: Part, program: Program) -> Any:
        def run(*inputs: Any) -> Any:
            if tell is not None:
                tell(program, inputs)
            return interpret(program, inputs)

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Part, "_compiled", compiled)
        yield
