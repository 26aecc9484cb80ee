"""Autograd's graph: which tensors a backward pass comes by, and where ``requires_grad`` depends on the path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import Node

from stillgraph.program.facts.info import info, mark
from stillgraph.trace.fakes.symbolic import is_hidden

if TYPE_CHECKING:
    from stillgraph.trace.graph.region import Region


# ---- autograd's graph
@dataclass(frozen=True)
class Reach:
    """What a backward pass from some tensors comes by.

    Attributes:
        nodes: of autograd's graph.
        certain: whether that is all: the graph does not end at a value that a branch, loop or gradient left, and no
            function of the user's may hold back a gradient.
    """

    nodes: frozenset[Node]
    certain: bool

    def meets(self, tensor: torch.Tensor) -> bool:
        """Whether a backward pass comes by a tensor, as far as the graph tells."""
        return node_of(tensor) in self.nodes


def node_of(fake: torch.Tensor) -> Node | None:
    """Autograd's node of a tensor; None if no gradient ever reaches it, whatever its ``requires_grad`` says."""
    if not fake.requires_grad:
        return None
    try:
        return torch.autograd.graph.get_gradient_edge(fake).node
    except (AssertionError, RuntimeError):  # a view made under `no_grad`, and one that was then written
        return None


def reach_of(roots: Iterable[torch.Tensor]) -> Reach:
    """What a backward pass from some tensors comes by."""
    with torch._C.DisableTorchFunction():
        todo = [node for node in map(node_of, roots) if node is not None]
        found: set[Node] = set()
        certain = True
        while todo:
            node = todo.pop()
            if node in found:
                continue
            found.add(node)
            variable = getattr(node, "variable", None)
            certain = (
                certain and not is_hidden(variable) and not isinstance(node, torch.autograd.function.BackwardCFunction)
            )
            todo.extend(after for after, _ in node.next_functions if after is not None)
    return Reach(frozenset(found), certain)


def requirement_differs(fake: torch.Tensor) -> bool:
    """Whether ``requires_grad`` depends on the path: that of the tensor itself, or of all that it was computed from."""
    if info(fake).grad_differs:
        return True
    with torch._C.DisableTorchFunction():
        todo = [node_of(fake)]
        found: set[Node | None] = {None}
        differs = False
        while todo:
            node = todo.pop()
            if node in found or node is None:
                continue
            found.add(node)
            if _ON_A_PATH in _metadata(node):
                differs = True
                continue
            variable = getattr(node, "variable", None)
            if variable is not None and not info(variable).grad_differs:
                return False
            differs = differs or variable is not None
            todo.extend(after for after, _ in node.next_functions)
    return differs


_ON_A_PATH = "stillgraph: of what a path has written in place"


@contextlib.contextmanager
def written_on_a_path(region: Region, args: Sequence[Any]) -> Iterator[None]:
    """While an operation runs on fakes, which may write to the first in place; that is one fake for all paths.

    Args:
        region: that the operation is recorded in.
        args: what it is given.
    """
    around = region.parent
    first: Any = args[0] if args and isinstance(args[0], torch.Tensor) else None
    behind = () if first is None or around is None else (first, first._base)
    older = [each for each in behind if each is not None and not each.requires_grad and _knows(around, each)]
    yield
    for each in older:
        if each.requires_grad:
            mark(each, grad_differs=True)
            node = node_of(each)
            if node is not None:
                _metadata(node)[_ON_A_PATH] = True


def _knows(region: Region | None, value: Any) -> bool:
    return region is not None and region.holds(value)


def _metadata(node: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = node.metadata  # which torch declares as a method
    return found


def accumulates(fake: torch.Tensor) -> bool:
    """Whether backward passes may leave a gradient in ``fake.grad``."""
    try:
        return fake.requires_grad and (fake.is_leaf or fake.retains_grad) and node_of(fake) is not None
    except RuntimeError:  # as in `node_of`: autograd does not say whether such a view is a leaf
        return False
