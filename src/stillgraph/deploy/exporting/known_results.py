"""What a region that was traced gives for arguments like those that it was traced with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from stillgraph.passes.regions.regions import placeholders
from stillgraph.passes.regions.values import value_of
from stillgraph.passes.state.growing import expression


def known_results(region: Any, args: Sequence[Any]) -> tuple[Any, ...] | Any | None:
    """Stand-ins for the results of a region, as its graph tells them, in memory of their own.

    Args:
        region: a function; of one that is no graph with values nothing is known.
        args: fake tensors and numbers.

    Returns:
        The results in the structure in which the region gives them; None where they are not known.
    """
    if not isinstance(region, fx.GraphModule):
        return None
    inputs = [value_of(node) for node in placeholders(region)]
    if len(inputs) != len(args) or not all(map(_alike, inputs, args)):
        return None
    (given,) = region.graph.output_node().args
    values = [value_of(value) for value in (given if isinstance(given, (tuple, list)) else [given])]
    if not all(map(_can_be_told, values)):
        return None
    made = tuple(_stand_in(value) for value in values)
    return made if isinstance(given, (tuple, list)) else made[0]


def _can_be_told(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return isinstance(value, FakeTensor) and value.layout is torch.strided
    return isinstance(value, (bool, int, float, torch.SymInt))


def _alike(known: Any, given: Any) -> bool:
    if not (isinstance(known, torch.Tensor) and isinstance(given, torch.Tensor)):
        return type(known) is type(given) and bool(expression(known) == expression(given))
    return bool(_described(known) == _described(given))


def _described(tensor: torch.Tensor) -> Any:
    if tensor.layout is not torch.strided:
        return id(tensor)
    sizes = [*tensor.shape, *tensor.stride(), tensor.storage_offset()]
    return tensor.dtype, tensor.device, tensor.requires_grad, tensor.dim(), [expression(size) for size in sizes]


def _stand_in(value: Any) -> Any:
    if not isinstance(value, FakeTensor):
        return value
    with value.fake_mode:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
