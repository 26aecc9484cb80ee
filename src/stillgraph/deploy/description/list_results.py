"""Lists of tensors whose sizes differ in a result: two tensors of a file each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import fx

from stillgraph.passes.lists.ragged import hand_out
from stillgraph.passes.lists.ragged_operations import layout_of
from stillgraph.passes.regions.regions import copied, outputs, set_outputs
from stillgraph.passes.regions.values import value_of
from stillgraph.program.outputs import Container, Instance, OrNone, Output, Repeated, Template
from stillgraph.program.program import Program


def two_tensors_for_lists(program: Program) -> Program:
    """The program with the values and the sizes of every such list in its result, in the place of the list.

    Raises:
        ExportError: the elements have a size that is nowhere known where the list is empty.
    """
    if not any(layout_of(value_of(value)) is not None for value in outputs(program.graph)):
        return program
    fresh = copied(program)
    return replace(fresh, result=_Result(fresh).template(fresh.result))


@dataclass(frozen=True)
class _Result:
    program: Program

    def template(self, template: Template) -> Template:
        if isinstance(template, Container):
            return replace(template, children=tuple(map(self.template, template.children)))
        if isinstance(template, Instance):
            return replace(template, attributes=tuple((n, self.template(v)) for n, v in template.attributes))
        if isinstance(template, OrNone):
            return replace(template, child=self.template(template.child))
        return self._repeated(template) if isinstance(template, Repeated) else template

    def _repeated(self, repeated: Repeated) -> Repeated:
        columns: list[Output] = []
        sized = []
        for position, column in enumerate(repeated.columns):
            node = outputs(self.program.graph)[column.index]
            if isinstance(node, fx.Node) and layout_of(value_of(node)) is not None:
                sized.append(position)
                columns += self._handed_out(node)
            else:
                columns.append(column)
        return replace(repeated, columns=tuple(columns), sized=tuple(sized))

    def _handed_out(self, node: fx.Node) -> tuple[Output, Output]:
        given = outputs(self.program.graph)
        set_outputs(self.program.graph, [*given, *hand_out(self.program.graph, node)])
        return Output(len(given)), Output(len(given) + 1)
