"""One structure for every path: what an artefact returns has one signature."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions import copied, outputs
from stillgraph.passes.values import Fakes, value_of
from stillgraph.program.operations import assert_
from stillgraph.program.outputs import Choice, Constant, Container, Instance, Output, Template
from stillgraph.program.program import Program
from stillgraph.program.types import show_shape


def one_structure(program: Program) -> Program:
    """The program with a result of one structure.

    Where one path returns ``None`` and another a value, the artefact gives the value, and fails on the path with
    ``None``.

    Raises:
        ExportError: two paths return different structures, dtypes or numbers of dimensions.
    """
    if not isinstance(_choice_in(program.result), Choice):
        return program
    fresh = copied(program)
    settle = _Settle(fresh)
    return replace(fresh, result=settle.template(fresh.result))


def _choice_in(template: Template) -> Choice | None:
    if isinstance(template, Choice):
        return template
    return next((found for child in _children(template) if (found := _choice_in(child)) is not None), None)


def _children(template: Template) -> tuple[Template, ...]:
    if isinstance(template, Container):
        return template.children
    return tuple(value for _, value in template.attributes) if isinstance(template, Instance) else ()


class _Settle:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._fakes = Fakes(program.graph)

    def template(self, template: Template) -> Template:
        if isinstance(template, Choice):
            return self._choice(template)
        if isinstance(template, Container):
            return replace(template, children=tuple(self.template(child) for child in template.children))
        if isinstance(template, Instance):
            return replace(template, attributes=tuple((n, self.template(v)) for n, v in template.attributes))
        return template

    def _choice(self, choice: Choice) -> Template:
        if _is_none(choice.left) == _is_none(choice.right):
            raise refuse("SG401", _difference(self._program, choice), location=self._program.location)
        takes_left = _is_none(choice.right)
        self._require(outputs(self._program.graph)[choice.flag.index], takes_left)
        return self.template(choice.left if takes_left else choice.right)

    def _require(self, flag: Any, value: bool) -> None:
        """Let the program fail unless a flag has a value."""
        graph = self._program.graph.graph
        with graph.inserting_before(graph.output_node()):
            fine = flag
            if not value:
                fine = graph.call_function(operator.not_, (flag,))
                fine.meta["val"] = self._fakes.number(bool)
            text = "the result is None, which the artefact cannot return"
            check: fx.Node = graph.call_function(assert_, (fine, text, True))
            check.meta["val"] = None


def _is_none(template: Template) -> bool:
    return isinstance(template, Constant) and template.value is None


def _difference(program: Program, choice: Choice) -> str:
    """How the two results of a choice differ, in the words of seed 002."""
    given = outputs(program.graph)
    sides = (choice.left, choice.right)
    values = [value_of(given[side.index]) if isinstance(side, Output) else None for side in sides]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return f"outputs differ in structure: {choice.left} and {choice.right}"
    left, right = (value for value in values if isinstance(value, torch.Tensor))
    if left.dtype != right.dtype:
        return f"outputs differ in dtype: {left.dtype} and {right.dtype}"
    shapes = [tuple(size if isinstance(size, int) else None for size in value.shape) for value in (left, right)]
    shown = ", ".join(f"shape{number} = {show_shape(shape)}" for number, shape in enumerate(shapes, 1))
    if _unknown_rank(*shapes):
        return f"the result is of unknown rank: {shown}; an export has one number of dimensions"
    return f"Shape Join Failed: {shown}"


def _unknown_rank(left: tuple[int | None, ...], right: tuple[int | None, ...]) -> bool:
    """Seed 002, rule 4: shapes of different rank join to an unknown rank if they agree up to an unknown dimension."""
    short, long = sorted((left, right), key=len)
    if None not in short or len(short) == len(long):
        return False
    known = short[: short.index(None)]
    return long[: len(known)] == known
