"""An order that Python finds in the run, as torch's stable sort."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.numbers.indexing import GET
from stillgraph.passes.numbers.number_errors import NAN_SORTED
from stillgraph.passes.regions.regions import all_regions, call, copied
from stillgraph.passes.regions.values import Fakes, dtype_of, kind_of, value_of
from stillgraph.program.graphs import arguments
from stillgraph.program.operations import require, sort_order
from stillgraph.program.program import Program

_HINT = "Sort with torch.sort, which every format has."

Emit = Callable[..., fx.Node]
"""Makes a node: target, arguments, ``value=`` what stands for it, and keywords."""


def order_to_tensors(program: Program) -> Program:
    """Find the order of keys by sorting a tensor of them. The sort is stable, as Python's is, and so is the reverse.

    ::

        order = sort_order([a, b])          order = torch.sort(torch.stack([a, b]), stable=True)[1]
        i = order[0]                  →     i = order[0].item()

    A key that is not a number fails: what Python's sort makes of one depends on where it stands.

    Raises:
        ExportError: the keys have several elements, or differ in dtype.
    """
    if not any(node.target is sort_order for module in all_regions(program.graph) for node in module.graph.nodes):
        return program
    fresh = copied(program)
    fakes = Fakes(fresh.graph)
    for module in all_regions(fresh.graph):
        for node in list(module.graph.find_nodes(op="call_function", target=sort_order)):
            _order(node, fakes)
    return fresh


def _order(node: fx.Node, fakes: Fakes) -> None:
    keys, reverse = arguments(node)

    def emit(target: Any, *args: Any, value: Any, **kwargs: Any) -> fx.Node:
        return call(node, target, args, value, **kwargs)

    with node.graph.inserting_before(node):
        order = order_of_known(node, emit, fakes, keys, reverse)
    for user in list(node.users):
        with user.graph.inserting_before(user):
            place = call(user, torch.full, ((), arguments(user)[1]), fakes.scalar(int), dtype=torch.int64)
            at = call(user, GET, (order, [place]), fakes.scalar(int))
            index = call(user, "item", (at,), user.meta["val"])
        user.replace_all_uses_with(index)
        user.graph.erase_node(user)
    node.graph.erase_node(node)


def order_of_known(node: fx.Node, emit: Emit, fakes: Fakes, keys: Sequence[Any], reverse: bool) -> fx.Node:
    """The indices in order of keys of which it is known how many there are: numbers, tensors of one element, tuples."""
    columns = [_column(node, emit, fakes, column) for column in _columns(node, keys)]
    return in_order(emit, fakes, columns, reverse)


def in_order(emit: Emit, fakes: Fakes, columns: Sequence[fx.Node], reverse: bool) -> fx.Node:
    """The indices of keys in order: by the first of some columns, among equals by the second, and so on."""
    order = None
    for column in reversed(columns):
        keys = value_of(column)
        count = keys.shape[0]
        indices = fakes.tensor((count,), torch.int64)
        if keys.dtype.is_floating_point:
            _refuse_nan(emit, fakes, column)
        if order is not None:
            column = emit(torch.index_select, column, 0, order, value=fakes.tensor((count,), keys.dtype))
        if keys.dtype == torch.bool:
            column = emit("to", column, torch.int64, value=indices)
        both = emit(torch.sort, column, stable=True, descending=reverse, value=(column.meta["val"], indices))
        found = emit(operator.getitem, both, 1, value=indices)
        order = found if order is None else emit(torch.index_select, order, 0, found, value=indices)
    assert order is not None, "there is a key"
    return order


def _refuse_nan(emit: Emit, fakes: Fakes, column: fx.Node) -> None:
    """Require that every key is a number, where there are two to compare."""
    count = value_of(column).shape[0]
    wrong = emit(torch.isnan, column, value=fakes.tensor((count,), torch.bool))
    fine = emit(torch.logical_not, emit(torch.any, wrong, value=fakes.scalar(bool)), value=fakes.scalar(bool))
    length = emit("size", column, 0, value=count)
    alone = emit(operator.lt, length, 2, value=fakes.number(bool))
    flag = emit(torch.scalar_tensor, alone, dtype=torch.bool, value=fakes.scalar(bool))
    emit(require, emit(torch.logical_or, fine, flag, value=fakes.scalar(bool)), NAN_SORTED, value=None)


def _columns(node: fx.Node, keys: Sequence[Any]) -> list[list[Any]]:
    """Keys that are tuples, taken apart."""
    if not any(isinstance(key, (tuple, list)) for key in keys):
        return [list(keys)]
    if len({len(key) if isinstance(key, (tuple, list)) else -1 for key in keys}) != 1:
        raise refuse("SG402", "the program sorts by tuples of several lengths", location=_line(node), hint=_HINT)
    return [list(column) for column in zip(*keys, strict=True)]


def _column(node: fx.Node, emit: Emit, fakes: Fakes, keys: list[Any]) -> fx.Node:
    """Keys as one tensor."""
    values = [value_of(key) for key in keys]
    dtypes = {value.dtype if isinstance(value, torch.Tensor) else _dtype(value) for value in values}
    dtype = next(iter(dtypes))
    single = all(not isinstance(value, torch.Tensor) or _is_single(value) for value in values)
    if len(dtypes) != 1 or dtype is None or not single:
        message = "the program sorts by values that are no numbers or tensors of one element, all of one dtype"
        raise refuse("SG402", message, location=_line(node), hint=_HINT)
    parts = []
    for key, value in zip(keys, values, strict=True):
        if not isinstance(value, torch.Tensor):
            key = emit(torch.full, (), key, dtype=dtype, value=fakes.tensor((), dtype))
        parts.append(emit("reshape", key, (1,), value=fakes.tensor((1,), dtype)))
    return emit(torch.cat, parts, value=fakes.tensor((len(parts),), dtype))


def _is_single(value: torch.Tensor) -> bool:
    return all(isinstance(size, int) and size == 1 for size in value.shape)


def _dtype(value: Any) -> torch.dtype | None:
    kind = kind_of(value)
    return None if kind is None else dtype_of(kind)


def _line(node: fx.Node) -> Any:
    return node.meta.get("location")
