"""The iterations of a loop, one after another, in the place of the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.passes.exceptions.failing import guard_operands, needs_guard
from stillgraph.passes.regions.regions import (
    COND,
    Loop,
    add_attribute,
    add_placeholder,
    add_result,
    call,
    inlined,
    outputs,
    placeholders,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes

WHY = "iterations_as_branches"
"""The entry of ``meta`` of the branches made here: why the iterations are not masked."""


@dataclass(frozen=True)
class Iterations:
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
            stop = false(idle.graph, self.loop.node, self.fakes)
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
        branch.meta[WHY] = why
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


def false(graph: fx.Graph, anchor: fx.Node, fakes: Fakes) -> fx.Node:
    """False as a tensor, where the graph inserts now; ``anchor`` is the node whose line it takes."""
    node = graph.call_function(torch.full, ((), False), {"dtype": torch.bool})
    node.meta.update({k: v for k, v in anchor.meta.items() if k in ("location", "context")}, val=fakes.scalar(bool))
    return node
