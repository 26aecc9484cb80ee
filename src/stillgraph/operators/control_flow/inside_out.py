"""Generators turned inside out: they call the block that is run where they yield."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.trace.control_flow.staging import any_flag
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, Place, Variable, of_a_block


def run_inside_out(
    context: Context,
    run: Callable[[Callable[[Any], Any]], Any],
    block: Callable[[Any], Exit | None],
    *,
    repeats: bool,
) -> Exit | None:
    """Run a generator that is turned inside out, and a block wherever it yields.

    Args:
        context: the statement that the block belongs to.
        run: runs the generator; given what takes what it yields, and says whether the block was left.
        block: the block, given what is yielded.
        repeats: whether it is a loop's body. That reads no value that a variable which it drops has had before.

    Returns:
        How the block was left.
    """
    journal = context.session.journal
    left = Variable("how a block was left", Exit())
    keeps, drops = (_of_a_block(context.keeps), _of_a_block(context.drops))

    def emit(item: Any) -> Any:
        for place in (*keeps, *drops):
            journal.note(place)
        try:
            exit = block(item) or Exit()
        finally:
            for place in drops:
                place.set(MISSING)  # dead, and no matter for the generator's branches
        if all(flag is False for flag in exit.flags):
            return False
        journal.write(left, exit)
        return True if exit.certain else any_flag(exit)

    for place in drops if repeats else ():
        journal.write(place, MISSING)
    run(emit)
    return None if all(flag is False for flag in left.value.flags) else left.value


def _of_a_block(places: list[Any]) -> list[Place]:
    """The same places, as the generator's arms are to see them; an operator's own variables know their age."""
    return [place if isinstance(place, Variable) else of_a_block(place) for place in places]
