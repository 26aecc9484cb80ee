"""Loops for targets without ``while``: written out as a number of iterations, of which those not needed do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import InternalError, refuse
from stillgraph.core.location import Location
from stillgraph.passes.exceptions.failing import has_effect, may_fail
from stillgraph.passes.loops.trip_counts import known_count
from stillgraph.passes.loops.unrolling import WHY, Iterations, false
from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.passes.regions.regions import (
    COND,
    WHILE,
    Branch,
    Loop,
    all_nodes,
    call,
    controls,
    copied,
    results,
)
from stillgraph.passes.regions.values import Fakes
from stillgraph.passes.state.aliases import separate_aliases
from stillgraph.passes.state.growing import changing_dimensions
from stillgraph.program.graphs import regions
from stillgraph.program.program import Program

_BOUND = "max_iterations"
_MOST = 50_000
"""How many operations the copies of one loop may have: torch takes minutes for more."""


# ---- which loops, and how often
def with_bounds(program: Program, bounds: int | Mapping[int, int]) -> Program:
    """The program with a note at each loop that `bound_loops` reads.

    Args:
        program: as captured.
        bounds: the most iterations of every loop, or those of the loops at each line.

    Raises:
        ExportError: there is a loop at none of the lines.
    """
    fresh = copied(program)
    for node in _nodes(fresh):
        bound = bounds if isinstance(bounds, int) else bounds.get(_line(node) or 0)
        if bound is None:
            message = "max_iterations says nothing of this loop"
            hint = f"Add {_line(node)}: … to max_iterations, or give one number for all loops."
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)
        node.meta[_BOUND] = bound
    return fresh


def loop_lines(program: Program) -> set[int]:
    """The lines at which a program has loops."""
    return {line for line in map(_line, _nodes(program)) if line is not None}


def bound_of(node: fx.Node) -> int | None:
    """The most iterations that `with_bounds` has noted at a loop."""
    return node.meta.get(_BOUND)


def _nodes(program: Program, target: Any = WHILE) -> list[fx.Node]:
    found = (module.graph.find_nodes(op="call_function", target=target) for module in regions(program.graph))
    return [node for nodes in found for node in nodes]


def _line(node: fx.Node) -> int | None:
    location: Location | None = node.meta.get("location")
    return None if location is None else location.line


# ---- the pass
def bound_loops(program: Program) -> Program:
    """Write the iterations of the loops one after another, as many as `with_bounds` has noted; leave other programs.

    ::

        while x > 1:             first = x > 1
            x = f(x)       →     y = f(x)
                                 more = first & (y > 1)
                                 z = where(more, y, x)         # else once more what the last iteration got
                                 y = f(z)
                                 …
                                 x = where(first, y, x)
                                 torch._assert_async(~(more & (y > 1)), "RuntimeError: …")

    An iteration that the loop does not have gets what the last one got and gives what that gave, so it cannot fail
    where that did not. Where the loop has none at all, indices are 0 and divisors 1 (see `failing.guard_operands`).
    Loops for which that does not do have a branch for each iteration: those that carry a tensor that changes its
    shape, that draw random numbers, or that have other operations that may fail. A loop over a constant range has its
    iterations and nothing else.

    Raises:
        ExportError: the copies have too many operations, or a loop is part of another's condition.
    """
    if not any(_BOUND in node.meta for node in _nodes(program)):
        return program
    fresh = copied(separate_aliases(program))
    work = _Bounding(Fakes(fresh.graph))
    for flag, text in work.region(fresh.graph):
        with flag.graph.inserting_after(flag):
            fine = call(flag, torch.logical_not, (flag,), work.fakes.scalar(bool))
        with flag.graph.inserting_after(fine):
            call(flag, torch._assert_async, (fine, text), None)
    return drop_dead_code(fresh)


def branching_loops(program: Program) -> list[str]:
    """What to say of the loops that `bound_loops` has written with a branch for each iteration."""
    noted = (node.meta.get(WHY) for node in _nodes(program, COND))
    return list(dict.fromkeys(note for note in noted if note is not None))


Flag = tuple[fx.Node, str]
"""What tells that a loop wanted more iterations than it has, and what is to be said then."""


@dataclass(frozen=True)
class _Bounding:
    fakes: Fakes

    def region(self, module: fx.GraphModule) -> list[Flag]:
        """Bound the loops of a region and of those in it; what is left to tell of them."""
        flags: list[Flag] = []
        for control in controls(module):
            flags += self._branch(control) if isinstance(control, Branch) else self._loop(control)
        return flags

    def _branch(self, branch: Branch) -> list[Flag]:
        handed_out = []
        for arm in branch.arms:
            for flag, text in self.region(arm):
                given = [flag if other is arm else self._no(other, branch.node) for other in branch.arms]
                handed_out.append((branch.add_output(given[0], given[1], self.fakes.scalar(bool)), text))
        return handed_out

    def _loop(self, loop: Loop) -> list[Flag]:
        if self.region(loop.test):
            message = "a loop is part of the condition of a loop, which max_iterations cannot tell of"
            hint = "Compute the condition in the body, and once before the loop."
            raise refuse("SG402", message, location=loop.node.meta.get("location"), hint=hint)
        flags = [(self._carried(loop, flag), text) for flag, text in self.region(loop.body)]
        iterations = Iterations(loop, self.fakes)
        count = known_count(loop)
        if count is not None:
            _check_size(loop, count)
            finals = iterations.written_out(count)
            return self._replaced(loop, finals, flags)
        bound = bound_of(loop.node)
        if bound is None:
            raise InternalError(f"a loop without a bound is left: {loop.node.name}")
        _check_size(loop, bound)
        why = _why_branches(loop)
        finals, more = iterations.masked(bound) if why is None else iterations.branching(bound, why)
        return [*self._replaced(loop, finals, flags), (more, _text(loop, bound))]

    def _carried(self, loop: Loop, flag: fx.Node) -> fx.Node:
        """Let a loop remember that a flag was true in an iteration."""
        with loop.node.graph.inserting_before(loop.node):
            entry = self._false(loop.node)
        _, before, result = loop.carry(entry, "exceeded", self.fakes.scalar(bool))
        graph = loop.body.graph
        with graph.inserting_before(graph.output_node()):
            either = call(flag, torch.logical_or, (before, flag), self.fakes.scalar(bool))
        loop.set_output(len(loop.entries) - 1, either)
        return result

    def _replaced(self, loop: Loop, finals: list[Any], flags: list[Flag]) -> list[Flag]:
        """Put values in the place of a loop's results; the flags among these."""
        taken = results(loop.node)
        places = {result: index for index, result in taken.items()}
        found = [(finals[places[flag]], text) for flag, text in flags]
        for index, result in taken.items():
            result.replace_all_uses_with(finals[index])
            loop.module.graph.erase_node(result)
        test, body = loop.node.args[:2]
        loop.module.graph.erase_node(loop.node)
        for region in (test, body):
            assert isinstance(region, fx.Node)
            loop.module.graph.erase_node(region)
            delattr(loop.module, str(region.target))
        return found

    def _no(self, arm: fx.GraphModule, anchor: fx.Node) -> fx.Node:
        with arm.graph.inserting_before(arm.graph.output_node()):
            return false(arm.graph, anchor, self.fakes)

    def _false(self, anchor: fx.Node) -> fx.Node:
        return false(anchor.graph, anchor, self.fakes)


def _text(loop: Loop, bound: int) -> str:
    location: Location | None = loop.node.meta.get("location")
    place = "a loop" if location is None else f"the loop at {location.file.rpartition('/')[2]}:{location.line}"
    return f"RuntimeError: {place} takes more than max_iterations={bound} iterations"


def _check_size(loop: Loop, count: int) -> None:
    size = sum(1 for region in loop.regions for inner in regions(region) for _ in inner.graph.nodes)
    if count * size > _MOST:
        message = f"{count} iterations of this loop are {count * size} operations; {_MOST} are the most"
        hint = "Give a smaller max_iterations, or save with the loop."
        raise refuse("SG402", message, location=loop.node.meta.get("location"), hint=hint)


def _why_branches(loop: Loop) -> str | None:
    """Why the iterations of a loop cannot be masked, if they cannot."""
    line = _line(loop.node)
    text = f"{'a loop' if line is None else f'the loop at line {line}'} has a branch for each iteration"
    if any(changing_dimensions(loop)):
        return f"{text}: what it carries changes its shape"
    for node in (node for region in loop.regions for node in all_nodes(region)):
        if has_effect(node):
            return f"{text}: it draws random numbers, or calls an operator that is not torch's"
        name = may_fail(node)
        if name is not None:
            return f"{text}: {name} may fail where the loop has ended"
    return None
