"""Nodes of a tree that know their parent, and other things that lead to themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


@dataclasses.dataclass(eq=False)
class Node:
    value: float
    weight: Tensor
    parent: Node | None = None
    kids: list[Node] = dataclasses.field(default_factory=list)

    def __repr__(self) -> str:
        return f"Node({self.value}, {self.weight.tolist()}, {len(self.kids)})"


def chosen_in_a_loop(x: Tensor, root: Node) -> Any:
    picked = []
    for kid in root.kids:
        if x.sum() > kid.value:
            picked.append(kid)
    return len(picked), picked


def chosen_by_a_comprehension(x: Tensor, root: Node) -> Any:
    return [kid for kid in root.kids if x.sum() > kid.value]


def the_greatest(x: Tensor, root: Node) -> Any:
    return max(root.kids, key=lambda kid: kid.value * x.sum())


def a_path(x: Tensor, root: Node) -> Any:
    path = [root]
    while x.sum() > len(path) and path[-1].kids:
        path.append(path[-1].kids[0])
    return path


def cut(x: Tensor, root: Node) -> Any:
    best = [kid for kid in root.kids if kid.value > 0]
    if x.sum() > 1:
        best = best[:1]
    return best


def computed_with(x: Tensor, root: Node) -> Any:
    y = x * root.weight
    for kid in root.kids:
        if x.sum() > kid.value and kid.parent is root:
            y = y + kid.weight * kid.parent.value
    return y


def written_to(x: Tensor, root: Node) -> Any:
    root.kids[0].weight = x * 2
    if x.sum() > 0:
        root.kids[1].parent.value += 1.0  # type: ignore[union-attr]  # the root
    return root.value * x


def a_node_more(x: Tensor, root: Node) -> Any:
    if x.sum() > 0:
        root.kids.append(Node(9.0, x, root))
    return len(root.kids)


CHOSEN = (chosen_in_a_loop, chosen_by_a_comprehension, a_path, a_node_more)  # of which the run says how many
FUNCTIONS = [*CHOSEN, cut, the_greatest, computed_with, written_to]
CALLS = [torch.ones(2), -torch.ones(2), torch.ones(2) * 2, -torch.ones(2)]


def tree() -> Node:
    root = Node(0.5, torch.ones(2))
    root.kids += [Node(float(i), torch.full((2,), float(i)), root) for i in range(3)]
    return root


def nodes(root: Node) -> list[Any]:
    return [repr(root), [(repr(kid), kid.parent is root) for kid in root.kids]]


def places(result: Any, root: Node) -> Any:
    """Which nodes of a tree a result is of."""
    if isinstance(result, (list, tuple)):
        return [places(each, root) for each in result]
    known = [root, *root.kids]
    return next((i for i, node in enumerate(known) if node is result), repr(result))


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Callable[..., Any], full_graph: bool) -> None:
    static: Any = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager")
    mine, theirs = tree(), tree()
    for x in CALLS:
        if full_graph and function in CHOSEN:
            with pytest.raises(sg.CaptureError, match="SG203"):
                static(x, mine)
            return
        assert places(static(x, mine), mine) == places(function(x, theirs), theirs)
        assert nodes(mine) == nodes(theirs)


def test_containers_in_themselves() -> None:
    def function(x: Tensor, ring: list[Any], table: dict[str, Any]) -> Any:
        return x * ring[0] + table["self"]["k"], ring[1] is ring

    static = sg.to_static(function, backend="eager")
    for number in (1.0, 2.0):
        ring: list[Any] = [torch.tensor([number])]
        ring.append(ring)
        table: dict[str, Any] = {"k": number}
        table["self"] = table
        assert repr(static(torch.ones(2), ring, table)) == repr(function(torch.ones(2), ring, table))
