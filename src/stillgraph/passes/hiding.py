"""What torch's shape inference would refuse or get wrong, hidden from it while a program is exported.

A graph is run, saved and loaded without its shapes being inferred anew, so what is written needs torch alone. What
infers shapes anew, as Inductor does, cannot take such a program.
"""

from __future__ import annotations

from torch import fx

from stillgraph.passes.growing import grows, hide_growth, show_growth
from stillgraph.passes.recurrent import hears_open_sequences, hide_recurrent, show_recurrent
from stillgraph.program.program import Program

GROWTH = "a loop carries a tensor whose shape changes"
OPEN_SEQUENCE = "a recurrent layer takes sequences whose length or number is open"


def hide(program: Program) -> Program:
    """Let a lowered program look to torch's shape inference as if sizes were what it takes them to be."""
    return hide_growth(hide_recurrent(program))


def show(module: fx.GraphModule) -> None:
    """Put torch's own operators back in the graph of an exported program, in place."""
    show_growth(module)
    show_recurrent(module)


def obstacle_to_inference(program: Program) -> str | None:
    """What in a lowered program cannot be inferred anew, in words; None if nothing."""
    if grows(program):
        return GROWTH
    if hears_open_sequences(program):
        return OPEN_SEQUENCE
    return None
