"""`explain`: what became of a call, as data with a short text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.program.guards import ConstantGuard
from stillgraph.program.operations import checkpointed, recursion, try_
from stillgraph.program.outputs import Choice, Container, Instance, Template
from stillgraph.program.program import Program

_STAGED = {
    torch.ops.higher_order.cond: "if",
    torch.ops.higher_order.while_loop: "while",
    recursion: "recursion",
    try_: "try",
    checkpointed: "checkpoint",
}


@dataclass(frozen=True)
class StagedConstruct:
    """A branch, loop, recursion, ``try`` or checkpoint of the program, and the user's line it stands on."""

    kind: str
    file: str
    line: int
    depth: int


@dataclass(frozen=True)
class Explanation:
    """What a capture gave.

    Attributes:
        program: the program itself.
        seconds: how long the capture took.
        nodes: operations in all regions together.
        regions: straight-line graphs.
        staged: branches, loops, recursions, tries and checkpoints, outermost first.
        operations: how often each operation occurs.
    """

    program: Program
    seconds: float
    nodes: int
    regions: int
    staged: tuple[StagedConstruct, ...]
    operations: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        head = (
            f"{self.program.name}: {self.nodes} operations in {self.regions} regions, captured in {self.seconds:.3f} s"
        )
        lines = [head]
        for construct in self.staged:
            place = f"{construct.file.rsplit('/', 1)[-1]}:{construct.line}"
            lines.append(f"{'  ' * (construct.depth + 1)}{construct.kind} staged at {place}")
        kinds = Counter(i.kind for i in self.program.inputs)
        lines.append("  inputs: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
        lines += [f"  split: {split} ({split.reason})" for split in self.program.splits]
        lines += ["  split: the result is another one on each path (SG603)"] * _choices(self.program.result)
        values = sum(isinstance(guard, ConstantGuard) for guard in self.program.guards)
        on_values = f", {values} of them on values (SG601)" if values else ""
        lines.append(f"  guards: {len(self.program.guards)}{on_values}; effects: {len(self.program.effects)}")
        lines += [f"    {effect}" for effect in self.program.effects]
        return "\n".join([*lines, "", str(self.program)])


def _choices(template: Template) -> int:
    """How often a result is picked by the path taken, for want of a join."""
    match template:
        case Choice(left=left, right=right):
            return 1 + _choices(left) + _choices(right)
        case Container(children=children):
            return sum(map(_choices, children))
        case Instance(attributes=attributes):
            return sum(_choices(value) for _, value in attributes)
    return 0


def explain(program: Program, seconds: float = 0.0) -> Explanation:
    """Describe a program."""
    operations: Counter[str] = Counter()
    staged: list[StagedConstruct] = []
    regions = _walk(program.graph, 0, operations, staged)
    return Explanation(
        program, seconds, sum(operations.values()), regions, tuple(staged), tuple(operations.most_common())
    )


def _walk(module: fx.GraphModule, depth: int, operations: Counter[str], staged: list[StagedConstruct]) -> int:
    regions = 1
    for node in module.graph.nodes:
        if node.op not in ("call_function", "call_method"):
            continue
        kind = _STAGED.get(node.target)
        if kind is None:
            operations[getattr(node.target, "__name__", str(node.target))] += 1
            continue
        location: Any = node.meta.get("location")
        if location is not None:
            staged.append(StagedConstruct(kind, location.file, location.line, depth))
        for argument in node.args:
            child = getattr(module, str(argument.target), None) if isinstance(argument, fx.Node) else None
            if isinstance(child, fx.GraphModule):
                regions += _walk(child, depth + 1, operations, staged)
    return regions
