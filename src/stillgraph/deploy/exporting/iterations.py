"""How often the loops of a program run for its example call, where their iterations are to be bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import unwinds
from stillgraph.passes.exceptions.printing import drop_printing
from stillgraph.passes.loops.bounding import bound_of
from stillgraph.program.blocks import Block
from stillgraph.program.interpreter import interpret
from stillgraph.program.program import Program


def most_iterations(program: Program, inputs: Sequence[Any]) -> dict[fx.Node, int]:
    """The most iterations of each loop that runs, by its node in a copy of the program.

    Args:
        program: what to run; it is interpreted, and prints nothing.
        inputs: a value for each of `Program.inputs`.
    """
    counter = _Counter()
    try:
        interpret(drop_printing(program), inputs, counter)
    except BaseException as error:  # the program's own: what it did until then is counted
        if unwinds(error):
            raise
    return counter.most


def check_iterations(program: Program, inputs: Sequence[Any]) -> None:
    """See that a call takes no more iterations than the bounds that its program has.

    Args:
        program: after `bounding.with_bounds`.
        inputs: of the call.

    Raises:
        ExportError: it takes more.
    """
    for node, count in most_iterations(program, inputs).items():
        bound = bound_of(node)
        if bound is not None and count > bound:
            message = f"this loop takes {count} iterations for the example arguments, and max_iterations is {bound}"
            hint = f"Give max_iterations={count} or more, or other example arguments."
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)


class _Counter:
    """An observer of an interpretation that counts iterations."""

    def __init__(self) -> None:
        self.most: dict[fx.Node, int] = {}
        self._now: dict[fx.Node, int] = {}

    def entered(self, block: Block, inputs: tuple[Any, ...]) -> None:
        """Count an iteration."""
        if block.node is not None and block.construct == "while" and block.role == "body":
            self._now[block.node] = self._now.get(block.node, 0) + 1
            self.most[block.node] = max(self.most.get(block.node, 0), self._now[block.node])

    def left(self, block: Block, outputs: tuple[Any, ...]) -> None:
        """Begin to count anew once a loop ends."""
        if block.node is not None and block.construct == "while" and block.role == "test" and not outputs[0]:
            self._now[block.node] = 0

    def computed(self, block: Block, node: fx.Node, value: Any) -> None:
        """Of no interest here."""
