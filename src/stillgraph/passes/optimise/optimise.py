"""The optimiser's passes in their order, each by its name; ``STILLGRAPH_OPTIMISE`` says which of them run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Set

from torch import fx

from stillgraph.passes.optimise.branches import join_equal_arms, settle_conditions
from stillgraph.passes.optimise.common import share_common
from stillgraph.passes.optimise.loops import drop_unused_carries, move_out_of_loops
from stillgraph.passes.optimise.selections import select_between_small_arms
from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.program.program import Program

PASSES: dict[str, Callable[[Program], Program]] = {
    "conditions": settle_conditions,
    "arms": join_equal_arms,
    "selections": select_between_small_arms,
    "common": share_common,
    "invariants": move_out_of_loops,
    "carries": drop_unused_carries,
}
_COMPILED = frozenset({"selections"})
"""What pays for compiled code alone: an interpreter takes a branch faster than it runs the operations of both arms."""
_VARIABLE = "STILLGRAPH_OPTIMISE"


def optimise(program: Program) -> Program:
    """Make a lowered program smaller and faster, if asked to; its results stay the same bit for bit.

    ::

        STILLGRAPH_OPTIMISE=all     y = sin(x) if p else sin(x)     →     y = sin(x)

    Args:
        program: of tensors alone, as behind `lower_numbers`.
    """
    return _optimised(program, PASSES.keys() - _COMPILED)


def optimise_for_a_compiler(program: Program) -> Program:
    """`optimise` for code that a compiler makes of the whole program, which is faster without small branches."""
    return _optimised(program, PASSES.keys())


def _optimised(program: Program, wanted: Set[str]) -> Program:
    names = chosen(os.environ.get(_VARIABLE, "none"))
    for name in names:
        if name in wanted:
            program = drop_dead_code(PASSES[name](program))
    if names:
        _drop_unused_regions(program.graph)
    return program


def _drop_unused_regions(module: fx.GraphModule) -> None:
    """Forget the regions of branches and loops that are gone."""
    used = {node.target for node in module.graph.nodes if node.op == "get_attr"}
    for name, child in list(module.named_children()):
        if isinstance(child, fx.GraphModule):
            if name in used:
                _drop_unused_regions(child)
            else:
                delattr(module, name)


def chosen(text: str) -> list[str]:
    """The names of passes that a text asks for: ``"all"``, ``"none"``, or some of `PASSES` with commas between them."""
    if text in ("all", "none"):
        return list(PASSES) if text == "all" else []
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in PASSES]
    if unknown:
        known = ", ".join(PASSES)
        warnings.warn(f"{_VARIABLE}: there is no pass {unknown[0]!r}; there are {known}", RuntimeWarning, stacklevel=2)
    return [name for name in PASSES if name in names]
