"""What each operation on a list becomes, where a tensor with a row for each element stands for the list."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from stillgraph.passes.kernels.sorting import in_order, order_of_known
from stillgraph.passes.lists.list_lowering import Lowering
from stillgraph.passes.numbers.indexing import GET
from stillgraph.passes.regions.values import value_of
from stillgraph.passes.state.growing import expression
from stillgraph.program import operations
from stillgraph.program.flattening import sizes_of, values_of


# ---- making lists
def _build(it: Lowering) -> fx.Node:
    items, spread = it.args
    parts = [item if index in spread else it.one(item) for index, item in enumerate(items)]
    if not parts:
        shape = (0, *(found_size(it, size) for size in it.row.shape))
        return it.rows(torch.zeros, shape, dtype=it.row.dtype, device=it.row.device)
    return parts[0] if len(parts) == 1 and spread else it.rows(torch.cat, parts)


def found_size(it: Lowering, size: Any) -> Any:
    """A size of the elements of a list that may be empty: known, a number, or read off a tensor that has it."""
    if isinstance(size, int):
        return size
    for node in it.module.graph.nodes:
        if node is it.node:
            break
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and expression(value) == expression(size):
            return node
        for dim, other in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if expression(other) == expression(size):
                return it.emit("size", node, dim, value=other)
    raise it.refuse("an empty list is made for tensors of a size that is not known there")


def _numbers(it: Lowering) -> fx.Node:
    """``tensor.tolist()``."""
    return it.rows("to", it.args[0], it.row.dtype, copy=True)


# ---- reading
def _length(it: Lowering) -> fx.Node:
    return it.emit("size", it.args[0], 0, value=it.node.meta["val"])


def _item(it: Lowering) -> fx.Node:
    rows, index = it.args
    if isinstance(index, slice):
        return _slice(it, rows, index)
    count = it.size(rows)
    place = it.place(index, count)
    return _element(it, rows, place, it.within(place, count, "IndexError: list index out of range"), count)


def _element(it: Lowering, rows: fx.Node, place: fx.Node, fine: fx.Node, count: fx.Node) -> fx.Node:
    """The element at a place; zeros where there is none, behind which the program stops."""
    longer = it.rows(torch.cat, [rows, it.blank(rows)])
    behind = it.scalar(torch.scalar_tensor, count, dtype=torch.int64)
    safe = it.scalar(torch.where, fine, place, behind)
    element = it.emit(GET, longer, [safe], value=it.fakes.rows(tuple(it.row.shape), it.row))
    if it.kind is not None:
        return it.emit("item", element, value=it.node.meta["val"])
    element.meta["val"] = it.node.meta["val"]
    return element


def _slice(it: Lowering, rows: fx.Node, part: slice) -> fx.Node:
    if part.step is None or (isinstance(part.step, int) and part.step > 0):
        return it.sliced(rows, part)
    if part.start is None and part.stop is None and part.step == -1:
        return it.rows(torch.flip, rows, (0,))
    raise it.refuse("a slice with a negative step of a list of which only the run knows the length")


# ---- changing
def _popped(it: Lowering) -> fx.Node:
    rows, index = it.args
    count = it.size(rows)
    it.require(it.number(operator.gt, count, 0, kind=bool), "IndexError: pop from empty list")
    return _without(it, rows, index, count, "IndexError: pop index out of range")


def _deleted(it: Lowering) -> fx.Node:
    rows, index = it.args
    if not isinstance(index, slice):
        return _without(it, rows, index, it.size(rows), "IndexError: list assignment index out of range")
    if index.step not in (None, 1) or (index.start is not None and index.stop is not None):
        raise it.refuse("a slice is deleted from the middle of a list of which only the run knows the length")
    kept = slice(None, index.start) if index.start is not None else slice(index.stop, None)
    return it.sliced(rows, kept if (index.start, index.stop) != (None, None) else slice(0, 0))


def _without(it: Lowering, rows: fx.Node, index: Any, count: fx.Node, text: str) -> fx.Node:
    place = it.place(index, count)
    it.within(place, count, text)
    if index == 0 or index == -1:
        return it.sliced(rows, slice(1, None) if index == 0 else slice(None, -1))
    fewer = it.positions(it.size(it.sliced(rows, slice(1, None))))
    later = it.vector(torch.ge, fewer, place, kind=bool)
    order = it.vector(torch.add, fewer, it.vector("to", later, torch.int64))
    return it.rows(torch.index_select, rows, 0, order)


def _inserted(it: Lowering) -> fx.Node:
    rows, index, item = it.args
    count = it.size(rows)
    place = it.place(index, count)
    longer = it.rows(torch.cat, [rows, it.one(item)])
    every = it.positions(it.size(longer))
    bounded = it.scalar(torch.minimum, it.scalar(torch.clamp, place, min=0), it.scalar(torch.scalar_tensor, count))
    later = it.vector("to", it.vector(torch.gt, every, bounded, kind=bool), torch.int64)
    here = it.vector(torch.eq, every, bounded, kind=bool)
    last = it.scalar(torch.scalar_tensor, count, dtype=torch.int64)
    order = it.vector(torch.where, here, last, it.vector(torch.sub, every, later))
    return it.rows(torch.index_select, longer, 0, order)


def _replaced(it: Lowering) -> fx.Node:
    rows, index, item = it.args
    count = it.size(rows)
    place = it.place(index, count)
    it.within(place, count, "IndexError: list assignment index out of range")
    here = it.as_mask(it.vector(torch.eq, it.positions(count), place, kind=bool))
    return it.rows(torch.where, here, it.one(item), rows)


def _taken(it: Lowering) -> fx.Node:
    rows, order = it.args
    if not isinstance(order, fx.Node):
        raise it.refuse("a list of which only the run knows the length is put in another order")
    return it.rows(torch.index_select, rows, 0, order)


def _repeated(it: Lowering) -> fx.Node:
    rows, count = it.args
    times = max(count, 0) if isinstance(count, int) else it.number(max, count, 0)
    return it.rows("repeat", rows, times, *(1 for _ in it.row.shape))


def _sorted(it: Lowering) -> fx.Node:
    keys, reverse = it.args
    if not isinstance(keys, fx.Node):
        return order_of_known(it.node, it.emit, it.fakes, keys, reverse)
    if it.row.shape and any(size != 1 for size in it.row.shape):
        raise it.refuse("a list of tensors of several elements is sorted")
    column = it.emit("reshape", keys, (-1,), value=it.fakes.tensor((value_of(keys).shape[0],), it.row.dtype))
    return in_order(it.emit, it.fakes, [column], reverse)


def _sorted_rows(it: Lowering) -> fx.Node:
    columns, reverse = it.args
    return in_order(it.emit, it.fakes, columns, reverse)


def _copied(it: Lowering) -> fx.Node:
    return it.rows("clone", it.args[0])


# ---- searching
def _matches(it: Lowering, rows: fx.Node, value: Any) -> fx.Node:
    if it.row.shape:
        raise it.refuse("a tensor is looked for in a list of which only the run knows the length")
    return it.vector(torch.eq, rows, value, kind=bool)


def _rows_with(it: Lowering) -> fx.Node:
    columns, values = it.args
    each = [it.vector(torch.eq, rows, value, kind=bool) for rows, value in zip(columns, values)]
    return functools.reduce(lambda left, right: it.vector(torch.logical_and, left, right, kind=bool), each)


def _contains(it: Lowering) -> fx.Node:
    found = it.scalar(torch.any, _matches(it, *it.args), kind=bool)
    return it.emit("item", found, value=it.node.meta["val"])


def _count(it: Lowering) -> fx.Node:
    total = it.scalar(torch.sum, _matches(it, *it.args), dtype=torch.int64)
    return it.emit("item", total, value=it.node.meta["val"])


def _index(it: Lowering) -> fx.Node:
    rows, value, *bounds = it.args
    if bounds:
        raise it.refuse("index() with bounds of a list of which only the run knows the length")
    removing = it.node.target is operations.found_to_remove
    missing = "list.remove(x): x not in list" if removing else f"{value} is not in list"
    found = _matches(it, rows, value)
    it.require(it.scalar(torch.any, found, kind=bool), f"ValueError: {missing}")
    after = it.vector(torch.cumsum, it.vector("to", found, torch.int64), 0)
    before = it.vector(torch.eq, after, 0, kind=bool)
    return it.emit("item", it.scalar(torch.sum, before, dtype=torch.int64), value=it.node.meta["val"])


# ---- tensors of lists
def _nonempty(it: Lowering, rows: fx.Node, text: str) -> fx.Node:
    """The rows, with one more where there is none, behind which the program stops."""
    it.require(it.number(operator.gt, it.size(rows), 0, kind=bool), text)
    return rows


def _stack(it: Lowering) -> fx.Node:
    rows, dim = (*it.args, 0)[:2]
    dim = it.node.kwargs.get("dim", dim)
    _nonempty(it, rows, "RuntimeError: stack expects a non-empty TensorList")
    if dim % (len(it.row.shape) + 1):
        rows = it.emit("movedim", rows, 0, dim, value=value_of(rows).movedim(0, dim))
    return it.emit("clone", rows, memory_format=torch.contiguous_format, value=it.node.meta["val"])


def _cat(it: Lowering) -> fx.Node:
    rows, dim = (*it.args, 0)[:2]
    dim = it.node.kwargs.get("dim", dim) % len(it.row.shape)
    _nonempty(it, rows, "ValueError: expected a non-empty list of Tensors")
    if dim:
        rows = it.emit("movedim", rows, 0, dim, value=value_of(rows).movedim(0, dim))
    shape = [*it.sizes(it.args[0])]
    shape[dim] = -1
    if 0 in shape:
        raise it.refuse("torch.cat of a list of tensors without elements")
    dense = it.emit("clone", rows, memory_format=torch.contiguous_format, value=it.fakes.like(value_of(rows)))
    return it.emit("reshape", dense, tuple(shape), value=it.node.meta["val"])


def _tensor(it: Lowering) -> fx.Node:
    """``torch.tensor(list_of_numbers)``."""
    value = it.node.meta["val"]
    return it.emit("to", it.args[0], value.device, value.dtype, copy=True, value=value)


# ---- a list among those of tensors whose sizes differ
def _values(it: Lowering) -> fx.Node:
    rows, lead, _ = it.args
    return it.emit(torch.flatten, rows, 0, lead, value=it.node.meta["val"])


def _sizes(it: Lowering) -> fx.Node:
    rows, lead = it.args
    sizes = [it.vector(torch.full, (1,), size, dtype=torch.int64) for size in it.sizes(rows)[:lead]]
    row = it.emit("reshape", it.vector(torch.cat, sizes), (1, lead), value=it.fakes.tensor((1, lead), torch.int64))
    return it.emit("repeat", row, it.size(rows), 1, value=it.node.meta["val"])


HANDLERS: dict[Any, Callable[[Lowering], fx.Node]] = {
    operations.build_list: _build,
    "tolist": _numbers,
    len: _length,
    operator.getitem: _item,
    operations.popped: _popped,
    operations.deleted: _deleted,
    operations.inserted: _inserted,
    operations.replaced: _replaced,
    operations.taken: _taken,
    operations.sort_order: _sorted,
    operations.sort_rows: _sorted_rows,
    operations.repeated: _repeated,
    operator.contains: _contains,
    "count": _count,
    "index": _index,
    operations.found_to_remove: _index,
    operations.rows_with: _rows_with,
    operations.copied_tensors: _copied,
    torch.stack: _stack,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), _cat),
    **dict.fromkeys((torch.tensor, torch.as_tensor), _tensor),
    values_of: _values,
    sizes_of: _sizes,
}
