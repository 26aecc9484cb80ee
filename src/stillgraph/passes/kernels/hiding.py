"""What torch's shape inference would refuse or get wrong, hidden from it while a program is exported.

A graph is run, saved and loaded without its shapes being inferred anew, so what is written needs torch alone. What
infers shapes anew, as Inductor does, cannot take such a program.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from stillgraph.core.location import Location
from stillgraph.passes.kernels.attention import hide_attention, open_attention, show_attention, write_out_open_attention
from stillgraph.passes.kernels.recurrent import hide_recurrent, open_layer, show_recurrent
from stillgraph.passes.state.growing import growing_loop, hide_growth, show_growth
from stillgraph.passes.state.slices import write_at_places
from stillgraph.program.program import Program

GROWTH = "a loop carries a tensor whose shape changes"
OPEN_SEQUENCE = "a recurrent layer takes sequences whose length or number is open"
OPEN_ATTENTION = "attention is over a length that only the run knows"


@dataclass(frozen=True)
class Obstacle:
    """What in a program cannot be inferred anew.

    Attributes:
        reason: `GROWTH`, `OPEN_SEQUENCE` or `OPEN_ATTENTION`.
        location: the user's line.
    """

    reason: str
    location: Location | None


def hide(program: Program) -> Program:
    """Let a lowered program look to torch's shape inference as if sizes were what it takes them to be."""
    return hide_growth(hide_recurrent(hide_attention(program)))


def write_out(program: Program) -> Program:
    """Put other operators in the place of those of a lowered program that Inductor has no form for."""
    return write_at_places(write_out_open_attention(program))


def show(module: fx.GraphModule) -> None:
    """Put torch's own operators back in the graph of an exported program, in place."""
    show_growth(module)
    show_recurrent(module)
    show_attention(module)


def obstacle_to_inference(program: Program) -> Obstacle | None:
    """What in a lowered program cannot be inferred anew; None if nothing."""
    found = (
        (GROWTH, growing_loop(program)),
        (OPEN_SEQUENCE, open_layer(program)),
        (OPEN_ATTENTION, open_attention(program)),
    )
    return next((Obstacle(reason, node.meta.get("location")) for reason, node in found if node is not None), None)
