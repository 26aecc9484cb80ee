"""What operations write in place."""

from __future__ import annotations

import operator
from collections.abc import Set
from typing import Any

import torch
from torch import fx

from stillgraph.program import operations
from stillgraph.program.graphs import regions

_IN_PLACE_OPERATORS = frozenset(
    {
        operator.setitem,
        operator.delitem,
        operator.iadd,
        operator.isub,
        operator.imul,
        operator.itruediv,
        operator.ifloordiv,
        operator.imod,
        operator.ipow,
        operator.imatmul,
        operator.iand,
        operator.ior,
        operator.ixor,
        operator.ilshift,
        operator.irshift,
        setattr,
    }
)
_RUNNING_STATISTICS = {"batch_norm": "training", "instance_norm": "use_input_stats"}
OWN = frozenset(value for value in vars(operations).values() if callable(value))
_NAMED_ALIKE = frozenset({operator.and_, operator.or_, operator.not_, operator.is_})
_WRITES_ANYTHING = frozenset({"outside", "backward"})


def name_of(node: fx.Node) -> str:
    """The name of the function or method that a node calls."""
    if node.op == "call_method":
        return str(node.target)
    name: str = getattr(node.target, "__name__", "")
    return name.split(".")[0]  # an ATen operator's name has its overload behind a dot


def written_arguments(node: fx.Node) -> list[fx.Node]:
    """The tensors among a node's arguments that the operation writes in place."""
    return _tensors([*_targets(node), *_statistics(node)])


def writes_in_place(module: fx.GraphModule) -> bool:
    """Whether a program changes tensors in place, or calls what may; running statistics do not count."""
    nodes = (node for region in regions(module) for node in region.graph.nodes)
    return any(name_of(node) in _WRITES_ANYTHING or _tensors(_targets(node)) for node in nodes)


def is_written(fake: torch.Tensor, storages: Set[int]) -> bool:
    """Whether a tensor with memory has been written to, or shares one of the storages that operations write to."""
    if fake.layout is not torch.strided or fake.device.type != "cpu":
        return False
    return (not fake.is_inference() and fake._version > 0) or fake.untyped_storage()._cdata in storages


def _targets(node: fx.Node) -> list[Any]:
    """What an operation writes to, going by its name and by how it is called."""
    if node.op not in ("call_function", "call_method") or node.target in OWN or node.target in _NAMED_ALIKE:
        return []
    name = name_of(node)
    written: list[Any] = []
    if node.target in _IN_PLACE_OPERATORS or (name.endswith("_") and not name.endswith("__")):
        written.append(node.args[0] if node.args else node.kwargs.get("input", node.kwargs.get("self")))
    if node.kwargs.get("inplace") is True:
        written.append(node.args[0] if node.args else node.kwargs.get("input"))
    return [*written, node.kwargs.get("out")]


def _statistics(node: fx.Node) -> list[Any]:
    """The running mean and variance that a normalisation updates."""
    name = name_of(node)
    if node.op != "call_function" or name not in _RUNNING_STATISTICS:
        return []
    mean = node.args[1] if len(node.args) > 1 else node.kwargs.get("running_mean")
    variance = node.args[2] if len(node.args) > 2 else node.kwargs.get("running_var")
    updates = node.kwargs.get(_RUNNING_STATISTICS[name], node.args[5] if len(node.args) > 5 else False)
    return [mean, variance] if updates else []


def _tensors(written: list[Any]) -> list[fx.Node]:
    flat = [each for value in written for each in (value if isinstance(value, (tuple, list)) else (value,))]
    return [each for each in flat if isinstance(each, fx.Node) and isinstance(each.meta.get("val"), torch.Tensor)]
