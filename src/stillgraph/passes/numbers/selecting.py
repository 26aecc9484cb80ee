"""``x[i, j]`` by numbers of the run, where it has to be a view: of a tensor that is written in place."""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch import fx

from stillgraph.passes.numbers.indexing import split_index
from stillgraph.passes.numbers.lowered_number import Number
from stillgraph.passes.numbers.promotion import Lowered
from stillgraph.passes.regions.values import value_of
from stillgraph.program.graphs import arguments


def selected(region: Lowered, node: fx.Node) -> fx.Node | None:
    """The view, one dimension after another: torch's tracer takes no tuple of such numbers. None for other indices."""
    index, value = arguments(node)[1], value_of(arguments(node)[0])
    is_number = functools.partial(_number, region)
    split = split_index(index, value.dim(), is_number)
    if split is None:
        return None
    tensor: fx.Node = region.made[arguments(node)[0]]
    if not split.is_trivial:
        with region.fakes.mode:
            value = value[fx.map_arg(split.basic, value_of)]
        tensor = region.emit(operator.getitem, tensor, fx.map_arg(split.basic, region.symbol_of), value=value)
    for dim, number in reversed(split.places):
        with region.fakes.mode:
            value = value.select(dim, 0)
        tensor = region.emit(torch.select, tensor, dim, _symbol(region, number), value=value)
    return tensor


def _number(region: Lowered, node: fx.Node) -> fx.Node | None:
    """A node that stands for a whole number, or for a tensor of one, by which torch selects as well."""
    made, value = region.made[node], value_of(node)
    if isinstance(made, Number):
        return node if made.kind is int else None
    return node if isinstance(value, torch.Tensor) and value.dim() == 0 and value.dtype in _WHOLE else None


_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8)


def _symbol(region: Lowered, node: fx.Node) -> Any:
    if isinstance(region.made[node], Number):
        return region.symbol_of(node)
    return region.emit("item", region.made[node], value=region.fakes.number(int))
