"""Other values for the tensors of the example call, and which programs are cheap and safe enough to be run on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from stillgraph.passes.regions.regions import COND, WHILE, all_regions, attribute, is_result
from stillgraph.passes.regions.values import value_of
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import act, invoke, outside
from stillgraph.program.program import Program

_MOST_OPERATIONS = 3000  # of the example call: a longer one is not made again and again


@dataclass(frozen=True)
class Change:
    """What becomes of the floating-point tensors of a call.

    Attributes:
        name: says it, after "arguments are".
        apply: makes the tensor, with memory of its own.
        operations, elements: how many a run may take, and how many elements one result may have.
    """

    name: str
    apply: Callable[[torch.Tensor], torch.Tensor]
    operations: int
    elements: int


_CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "negated": torch.neg,
    "ten times as large": lambda tensor: tensor * 10,
    "zero": torch.zeros_like,
}


def changes_for(program: Program, run: Callable[[], Any]) -> list[Change]:
    """The changes a program is tried on: none where it has one path, or reaches outside itself.

    Args:
        program: the program.
        run: runs it on the example call.
    """
    nodes = [node for module in all_regions(program.graph) for node in module.graph.nodes]
    if not any(node.target in (COND, WHILE) for node in nodes):
        return []
    others = set(CONSTRUCTS) - {COND, WHILE}
    if any(node.target in others or node.target in (act, invoke, outside) for node in nodes):
        return []
    if not all(_is_counted(module, node) for module in all_regions(program.graph) for node in module.graph.nodes):
        return []
    with _Counting(_MOST_OPERATIONS, None) as counting:
        outcome = run()
    if isinstance(outcome, BaseException):
        return []
    most, elements = 3 * counting.operations + 200, max(4 * counting.elements, 1 << 16)
    return [Change(name, apply, most, elements) for name, apply in _CHANGES.items()]


def is_within(change: Change, run: Callable[[], Any]) -> bool:
    """Whether a program ends in time on the changed call: a loop need not end on values it was not written for."""
    with _Counting(change.operations, change.elements):
        return not isinstance(run(), _TooLongError)


def _is_counted(module: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a loop computes with tensors in every iteration, so that counting sees it run."""
    if node.target is not WHILE:
        return True
    inside = (each for region in arguments(node)[:2] for each in attribute(module, region).graph.nodes)
    return any(each.op in ("call_function", "call_method") and _is_on_tensors(each) for each in inside)


def _is_on_tensors(node: fx.Node) -> bool:
    if is_result(node) or node.target in CONSTRUCTS:
        return False
    return any(isinstance(value_of(each), torch.Tensor) for each in (node, *node.all_input_nodes))


class _TooLongError(Exception):
    """A run takes more operations or memory than it may."""


class _Counting(TorchDispatchMode):
    """Counts operations, and ends a run that takes too many, or makes too much."""

    def __init__(self, most: int, elements: int | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.most, self.most_elements = most, elements
        self.operations = self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.elements = max(self.elements, result.numel())
        if self.operations > self.most or (self.most_elements is not None and self.elements > self.most_elements):
            raise _TooLongError
        return result
