"""What operations write in place."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import torch
from torch import fx

from stillgraph.program.facts import schemas
from stillgraph.program.graphs import regions

_WRITES_ANYTHING = frozenset({"outside", "backward"})


def name_of(node: fx.Node) -> str:
    """The name of the function or method that a node calls."""
    if node.op == "call_method":
        return str(node.target)
    name: str = getattr(node.target, "__name__", "")
    return name.split(".")[0]  # an ATen operator's name has its overload behind a dot


def written_arguments(node: fx.Node) -> list[fx.Node]:
    """The tensors among a node's arguments that the operation writes in place."""
    return _tensors([*schemas.writes(node), *schemas.statistics(node)])


def writes_in_place(module: fx.GraphModule) -> bool:
    """Whether a program changes tensors in place, or calls what may; running statistics do not count."""
    nodes = (node for region in regions(module) for node in region.graph.nodes)
    return any(name_of(node) in _WRITES_ANYTHING or _tensors(schemas.writes(node)) for node in nodes)


def is_written(fake: torch.Tensor, storages: Set[int]) -> bool:
    """Whether a tensor with memory has been written to, or shares one of the storages that operations write to."""
    if fake.layout is not torch.strided or fake.device.type != "cpu":
        return False
    return (not fake.is_inference() and fake._version > 0) or fake.untyped_storage()._cdata in storages


def _tensors(written: list[Any]) -> list[fx.Node]:
    flat = [each for value in written for each in (value if isinstance(value, (tuple, list)) else (value,))]
    return [each for each in flat if isinstance(each, fx.Node) and isinstance(each.meta.get("val"), torch.Tensor)]
