"""The regions of a program as a tree: which branch, loop, recursion, `try` or checkpoint each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.location import Location
from stillgraph.program.facts.rerouting import rerouted
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import checkpointed, recursion, try_

CONSTRUCTS: dict[Any, tuple[str, dict[int, str]]] = {
    torch.ops.higher_order.cond: ("if", {1: "then", 2: "else"}),
    torch.ops.higher_order.while_loop: ("while", {0: "test", 1: "body"}),
    try_: ("try", {1: "body", 2: "except"}),
    recursion: ("recursion", {1: "body"}),
    checkpointed: ("checkpoint", {0: "body"}),
    rerouted: ("backward", {0: "body"}),
}
"""The operations that have regions: what the construct is called, and which arguments are regions in which role."""


@dataclass(frozen=True, eq=False)
class Block:
    """A region and where it stands.

    Attributes:
        number: its place in `Program.regions`, by which `Program.source_map` names it, too.
        module: its graph.
        role: ``"top"``, or what it is to its construct: ``"then"``, ``"else"``, ``"test"``, ``"body"``, ``"except"``.
        parent: the region around it; None for the top.
        node: its construct, a node of the parent's graph; None for the top.
    """

    number: int
    module: fx.GraphModule
    role: str
    parent: Block | None = None
    node: fx.Node | None = None

    @property
    def construct(self) -> str:
        """What `CONSTRUCTS` calls it: ``"if"``, ``"while"`` and so on; ``"program"`` for the top."""
        return "program" if self.node is None else CONSTRUCTS[self.node.target][0]

    @property
    def written(self) -> str:
        """What the user wrote for a branch (see `written_as`)."""
        return "" if self.node is None else written_as(self.node)

    @property
    def location(self) -> Location | None:
        """The user's line of its construct."""
        return None if self.node is None else self.node.meta.get("location")

    @property
    def depth(self) -> int:
        """How many regions are around it."""
        return 0 if self.parent is None else self.parent.depth + 1

    def __str__(self) -> str:
        if self.node is None:
            return "the top level"
        where = "" if self.location is None else f" at {self.location.file.rsplit('/', 1)[-1]}:{self.location.line}"
        return f"'{self.role}' of the {self.construct}{where}"


def written_as(node: fx.Node) -> str:
    """What the user wrote for a construct: ``"if"``, ``"if expression"``, ``"comprehension"`` (an ``if`` in one),
    ``"and 1"``, ``"or 2"`` (an operand, counted from 1), or the construct's own name.

    Empty for a branch that the capture made of its own accord: on the flag of a ``break``, say.
    """
    return str(node.meta.get("written", CONSTRUCTS[node.target][0]))


def blocks(graph: fx.GraphModule) -> tuple[Block, ...]:
    """The regions of a program's graph, in the order of `Program.regions`."""
    numbers = {id(region): number for number, region in enumerate(regions(graph))}
    found = list(_below(Block(0, graph, "top"), numbers))
    return tuple(sorted(found, key=lambda block: block.number))


def _below(block: Block, numbers: dict[int, int]) -> Iterator[Block]:
    yield block
    for node in block.module.graph.nodes:
        if node.op != "call_function" or node.target not in CONSTRUCTS:
            continue
        for index, role in CONSTRUCTS[node.target][1].items():
            module = region_of(block.module, arguments(node)[index])
            yield from _below(Block(numbers[id(module)], module, role, block, node), numbers)


def region_of(module: fx.GraphModule, reference: Any) -> fx.GraphModule:
    """The region that an argument of a construct stands for: a ``get_attr`` node of ``module``."""
    region: Any = module
    for name in str(reference.target).split("."):
        region = getattr(region, name)
    assert isinstance(region, fx.GraphModule)
    return region
