"""Loops for targets without ``while``: so many iterations as are asked for, of which those beyond the last do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import InternalError, refuse
from stillgraph.core.location import Location
from stillgraph.passes.aliases import separate_aliases
from stillgraph.passes.dead_code import drop_dead_code
from stillgraph.passes.failing import guard_operands, has_effect, may_fail, needs_guard
from stillgraph.passes.growing import changing_dimensions
from stillgraph.passes.regions import (
    COND,
    WHILE,
    Branch,
    Loop,
    add_attribute,
    add_placeholder,
    add_result,
    call,
    control_of,
    controls,
    copied,
    inlined,
    outputs,
    placeholders,
    results,
    set_outputs,
)
from stillgraph.passes.trip_counts import known_count
from stillgraph.passes.values import Fakes
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

    An iteration that the loop does not have gets what the last one got and gives what that gave, so it cannot fail where
    that did not. Where the loop has none at all, indices are 0 and divisors 1 (see `failing.guard_operands`). Loops
    for which that does not do have a branch for each iteration: those that carry a tensor that changes its shape, that
    draw random numbers, or that have other operations that may fail. A loop over a constant range is written out.

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
    noted = (node.meta.get(_BOUND) for node in _nodes(program, COND))
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
        for side, arm in enumerate(branch.arms):
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
        iterations = _Iterations(loop, self.fakes)
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
            return _full(arm.graph, anchor, self.fakes)

    def _false(self, anchor: fx.Node) -> fx.Node:
        return _full(anchor.graph, anchor, self.fakes)


def _full(graph: fx.Graph, anchor: fx.Node, fakes: Fakes) -> fx.Node:
    """False, as a tensor."""
    node = graph.call_function(torch.full, ((), False), {"dtype": torch.bool})
    node.meta.update({k: v for k, v in anchor.meta.items() if k in ("location", "context")}, val=fakes.scalar(bool))
    return node


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
    location: Location | None = loop.node.meta.get("location")
    where = "a loop" if location is None else f"the loop at line {location.line}"
    if any(changing_dimensions(loop)):
        return f"{where} has a branch for each iteration: what it carries changes its shape"
    for node in (node for region in loop.regions for node in _operations(region)):
        if has_effect(node):
            return f"{where} has a branch for each iteration: it draws random numbers, or calls an operator that is not torch's"
        name = may_fail(node)
        if name is not None:
            return f"{where} has a branch for each iteration: {name} may fail where the loop has ended"
    return None


def _operations(module: fx.GraphModule) -> Iterator[fx.Node]:
    for node in module.graph.nodes:
        yield node
        control = control_of(module, node)
        for region in () if control is None else control.regions:
            yield from _operations(region)


@dataclass(frozen=True)
class _Iterations:
    """Writes the iterations of a loop in front of it."""

    loop: Loop
    fakes: Fakes

    def _go(self, carried: list[Any]) -> Any:
        loop = self.loop
        return inlined(loop.module, loop.node, loop.test, (*carried, *loop.operands))[0]

    def _step(self, carried: list[Any]) -> list[Any]:
        loop = self.loop
        return inlined(loop.module, loop.node, loop.body, (*carried, *loop.operands))

    def written_out(self, count: int) -> list[Any]:
        """All iterations of a loop that always has so many."""
        loop = self.loop
        values = list(loop.entries)
        with loop.module.graph.inserting_before(loop.node):
            for _ in range(count):
                values = self._step(values)
            if count:
                return values
            return [call(loop.node, "clone", (value,), self.fakes.like(value.meta["val"])) for value in values]

    def masked(self, count: int) -> tuple[list[Any], fx.Node]:
        """Iterations of which all are carried out: what they leave, and whether the loop wanted more."""
        loop = self.loop
        entries = list(loop.entries)
        kept = [place is left for place, left in zip(placeholders(loop.body), outputs(loop.body))]
        with loop.module.graph.inserting_before(loop.node):
            first = active = self._go(entries)
            self._guard(first)
            given = entries
            values = self._step(given)
            for _ in range(count - 1):
                active = self._both(active, self._go(values))
                given = [
                    old if same else self._chosen(active, new, old)
                    for same, new, old in zip(kept, values, given)
                ]
                values = self._step(given)
            more = self._both(active, self._go(values))
            return [self._chosen(first, new, old) for new, old in zip(values, entries)], more

    def _guard(self, first: fx.Node) -> None:
        loop = self.loop
        if any(needs_guard(region) for region in loop.regions):
            for region, flag in zip(loop.regions, loop.add_operand(first)):
                guard_operands(region, flag, self.fakes)

    def branching(self, count: int, why: str) -> tuple[list[Any], fx.Node]:
        """Iterations of which each is an arm of a branch: what they leave, and whether the loop wanted more."""
        loop = self.loop
        arm, idle = self._arm(), self._idle()
        with loop.module.graph.inserting_before(loop.node):
            values, go = list(loop.entries), self._go(list(loop.entries))
            for _ in range(count):
                *values, go = self._either(go, arm, idle, values, why)
            return values, go

    def _arm(self) -> fx.GraphModule:
        """The body, which gives also whether there is a next iteration."""
        loop = self.loop
        arm = loop.body
        carried = outputs(arm)
        operands = placeholders(arm)[len(loop.entries) :]
        with arm.graph.inserting_before(arm.graph.output_node()):
            (go,) = inlined(arm, loop.node, loop.test, (*carried, *operands))
        set_outputs(arm, [*carried, go])
        return arm

    def _idle(self) -> fx.GraphModule:
        """Hands on what it is given; there is no next iteration."""
        idle = fx.GraphModule(torch.nn.Module(), fx.Graph(), class_name="Region")
        idle.graph.output(())
        for index, place in enumerate(placeholders(self.loop.body)):
            add_placeholder(idle, index, place.name, place, place.meta["val"])
        with idle.graph.inserting_before(idle.graph.output_node()):
            stop = _full(idle.graph, self.loop.node, self.fakes)
        set_outputs(idle, [*placeholders(idle)[: len(self.loop.entries)], stop])
        return idle

    def _either(self, go: fx.Node, arm: fx.GraphModule, idle: fx.GraphModule, values: list[Any], why: str) -> list[Any]:
        loop, module = self.loop, self.loop.module
        arms = []
        for name, region in (("iteration", arm), ("none", idle)):
            held = add_attribute(module, f"{loop.node.name}_{name}", region)
            arms.append(module.graph.get_attr(held))
            arms[-1].meta["val"] = getattr(module, held)
        branch = call(loop.node, COND, (go, *arms, (*values, *loop.operands)), ())
        branch.meta[_BOUND] = why
        given = [self.fakes.like(value) for value in loop.node.meta["val"]]
        return [add_result(branch, value) for value in (*given, self.fakes.scalar(bool))]

    # ---- masks
    def _both(self, left: fx.Node, right: fx.Node) -> fx.Node:
        return call(self.loop.node, torch.logical_and, (left, right), self.fakes.scalar(bool))

    def _chosen(self, flag: fx.Node, new: fx.Node, old: fx.Node) -> fx.Node:
        """``new`` where a flag is true, else ``old``."""
        if new is old:
            return new
        value = self.fakes.like(new.meta["val"])
        anchor = self.loop.node
        if value.dtype != torch.bool:
            return call(anchor, torch.where, (flag, new, old), value)
        # runtimes have no choice between truth values
        other = call(anchor, torch.logical_not, (flag,), self.fakes.scalar(bool))
        left = call(anchor, torch.logical_and, (flag, new), value)
        return call(anchor, torch.logical_or, (left, call(anchor, torch.logical_and, (other, old), value)), value)
