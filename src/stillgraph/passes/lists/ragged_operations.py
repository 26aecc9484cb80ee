"""What each operation on a list of tensors whose sizes differ becomes, where values and sizes stand for the list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.passes.lists.list_lowering import Lowering
from stillgraph.passes.lists.list_operations import found_size
from stillgraph.passes.numbers.indexing import GET
from stillgraph.passes.regions.values import value_of
from stillgraph.program import operations
from stillgraph.program.flattening import sizes_of, values_of
from stillgraph.program.types import ListType, NumberType, TensorType

_NUMBERS = ListType(NumberType(int))
_SIZES = "RuntimeError: the sizes of the tensors in a list differ where they have to be equal"


@dataclass(frozen=True)
class Layout:
    """How the elements of a list lie: the first ``lead`` dimensions of each are one dimension of the values."""

    element: TensorType
    lead: int

    @property
    def row(self) -> TensorType:
        """The type of one of the values."""
        return TensorType(self.element.dtype, self.element.device, tuple(self.element.shape[self.lead :]))


def layout_of(type_: Any) -> Layout | None:
    """The layout of a list of tensors whose sizes differ; None for anything else."""
    element = type_.element if isinstance(type_, ListType) else None
    if not isinstance(element, TensorType) or element.may_be_none or element.may_be_unbound:
        return None
    open_ = [dim for dim, size in enumerate(element.shape) if size is None]
    return Layout(element, open_[-1] + 1) if open_ else None


@dataclass(frozen=True)
class Flat:
    """The two tensors of a list: ``values`` has all elements one behind another, ``sizes`` a row for each."""

    values: fx.Node
    sizes: fx.Node
    layout: Layout


def widened(it: Lowering, flat: Flat, layout: Layout) -> Flat:
    """A list in a layout in which more of the leading dimensions are one."""
    more = layout.lead - flat.layout.lead
    if more == 0:
        return flat
    if more < 0:
        raise it.refuse("a list of tensors whose sizes differ becomes one of tensors of which fewer sizes differ")
    sizes, count = [flat.sizes], it.size(flat.sizes)
    for dim in range(1, more + 1):
        (size,) = it.sizes(flat.values)[dim - 1 : dim]
        value = it.fakes.tensor((it.fakes.count(), 1), torch.int64)
        sizes.append(it.emit(torch.full, (count, 1), size, dtype=torch.int64, value=value))
    values = it.rows(torch.flatten, flat.values, 0, more)
    value = it.fakes.tensor((it.fakes.count(), layout.lead), torch.int64)
    return Flat(values, it.emit(torch.cat, sizes, 1, value=value), layout)


@dataclass
class Step:
    """One operation on a list: ``it`` makes nodes, ``flat`` gives the two tensors of a list of this layout."""

    it: Lowering
    layout: Layout
    flat: Callable[[fx.Node], Flat]

    # ---- pieces
    def table(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """An operation that gives a row of sizes for each element of a list."""
        value = self.it.fakes.tensor((self.it.fakes.count(), self.layout.lead), torch.int64)
        return self.it.emit(target, *args, value=value, **kwargs)

    def column(self, sizes: fx.Node, dim: int) -> fx.Node:
        """One size of each element."""
        return self.it.vector("select", sizes, 1, dim)

    def counts(self, sizes: fx.Node) -> fx.Node:
        """How many of the values each element has."""
        product = self.column(sizes, 0)
        for dim in range(1, self.layout.lead):
            product = self.it.vector(torch.mul, product, self.column(sizes, dim))
        return product

    def starts(self, counts: fx.Node) -> fx.Node:
        """Where each element begins."""
        return self.it.vector(torch.sub, self.it.vector(torch.cumsum, counts, 0), counts)

    def number(self, scalar: fx.Node, value: Any = None) -> fx.Node:
        return self.it.emit("item", scalar, value=self.it.fakes.number(int) if value is None else value)

    def owners(self, counts: fx.Node, total: fx.Node) -> fx.Node:
        """For each of ``total`` values the place of the element that it belongs to."""
        ends = self.it.vector(torch.cumsum, counts, 0)
        longer = self.it.number(operator.add, total, 1)
        blank = self.it.vector(torch.zeros, (longer,), dtype=torch.int64)
        marks = self.it.vector("scatter_add", blank, 0, ends, self.it.vector(torch.ones_like, ends))
        shorter = self.it.emit(operator.getitem, marks, slice(None, -1), value=value_of(marks))
        return self.it.vector(torch.cumsum, shorter, 0)

    def taken(self, vector: fx.Node, places: fx.Node) -> fx.Node:
        return self.it.vector(torch.index_select, vector, 0, places)

    def along(self, vector: fx.Node, axis: int, axes: int) -> fx.Node:
        """A vector in a shape in which it meets tensors of so many dimensions along one of them."""
        shape = tuple(-1 if dim == axis else 1 for dim in range(axes))
        return self._places("reshape", vector, shape, axes=axes)

    def _places(self, target: Any, *args: Any, axes: int) -> fx.Node:
        value = self.it.fakes.tensor(tuple(self.it.fakes.count() for _ in range(axes)), torch.int64)
        return self.it.emit(target, *args, value=value)

    def digits(self, places: fx.Node | None, sizes: Sequence[tuple[Any, fx.Node]], first: int, axes: int) -> fx.Node:
        """Go on with places that count through dimensions: of each the number and the tensor of its size."""
        for axis, (number, scalar) in enumerate(sizes, first):
            digit = self.along(self.it.positions(number), axis, axes)
            if places is not None:
                digit = self._places(torch.add, self._places(torch.mul, places, scalar, axes=axes), digit, axes=axes)
            places = digit
        assert places is not None, "there is a dimension"
        return places

    def added(self, places: fx.Node, starts: fx.Node, axes: int) -> fx.Node:
        return self._places(torch.add, places, starts, axes=axes)

    def read(self, values: fx.Node, places: fx.Node, value: Any) -> fx.Node:
        """The values at these places."""
        device = self.layout.element.device
        if device.type != "cpu":
            places = self.it.emit("to", places, device, value=value_of(places).to(device))
        return self.it.emit(GET, values, [places], value=value)

    # ---- lists
    def one(self, item: fx.Node) -> Flat:
        """An element as a list."""
        lead = self.layout.lead
        shape = value_of(item).shape
        values = item if lead == 1 else self.it.rows(torch.flatten, item, 0, lead - 1)
        numbers = [
            self.it.emit("size", item, dim, value=size) if not isinstance(size, int) else size
            for dim, size in enumerate(shape[:lead])
        ]
        scalars = [self.it.vector(torch.full, (1,), number, dtype=torch.int64) for number in numbers]
        row = scalars[0] if lead == 1 else self.it.vector(torch.cat, scalars)
        return Flat(values, self.table("reshape", row, (1, lead)), self.layout)

    def joined(self, parts: Sequence[Flat]) -> Flat:
        """One list behind the other."""
        if len(parts) == 1:
            return parts[0]
        values = self.it.rows(torch.cat, [part.values for part in parts])
        return Flat(values, self.table(torch.cat, [part.sizes for part in parts]), self.layout)

    def empty(self) -> Flat:
        """A list without elements."""
        row = self.layout.row
        shape = (0, *(found_size(self.it, size) for size in row.shape))
        values = self.it.rows(torch.zeros, shape, dtype=row.dtype, device=row.device)
        return Flat(values, self.table(torch.zeros, (0, self.layout.lead), dtype=torch.int64), self.layout)

    def ordered(self, flat: Flat, order: fx.Node) -> Flat:
        """The elements at some places."""
        counts = self.counts(flat.sizes)
        chosen = self.taken(counts, order)
        total = self.number(self.it.scalar(torch.sum, chosen))
        owners = self.owners(chosen, total)
        shift = self.it.vector(torch.sub, self.taken(self.starts(counts), order), self.starts(chosen))
        places = self.it.vector(torch.add, self.it.positions(total), self.taken(shift, owners))
        value = self.it.fakes.rows((self.it.fakes.count(), *self.layout.row.shape), self.layout.row)
        values = self.read(flat.values, places, value)
        return Flat(values, self.table(torch.index_select, flat.sizes, 0, order), self.layout)

    def longer(self, flat: Flat) -> fx.Node:
        """The sizes, with one more row of zeros: an element there is not has no values."""
        blank = self.table(torch.zeros, (1, self.layout.lead), dtype=torch.int64)
        return self.table(torch.cat, [flat.sizes, blank])


# ---- making and changing
def _build(step: Step) -> Flat:
    items, spread = step.it.args
    parts = [step.flat(item) if index in spread else step.one(item) for index, item in enumerate(items)]
    return step.joined(parts) if parts else step.empty()


def _rearranged(step: Step) -> Flat:
    """An operation that leaves elements as they are: the same is done with their places."""
    source, *rest = step.it.args
    flat = step.flat(source)
    count = step.it.size(flat.sizes)
    places = step.it.emit("tolist", step.it.positions(count), value=_NUMBERS)
    if step.it.node.target in (operations.inserted, operations.replaced):
        flat = step.joined([flat, step.one(rest.pop())])
        rest.append(count)
    order = step.it.emit(step.it.node.target, places, *rest, value=_NUMBERS)
    return step.ordered(flat, step.it.vector(torch.tensor, order, dtype=torch.int64))


# ---- reading
def _length(step: Step) -> fx.Node:
    flat = step.flat(step.it.args[0])
    return step.it.emit("size", flat.sizes, 0, value=step.it.node.meta["val"])


def _item(step: Step) -> fx.Node | Flat:
    it, lead = step.it, step.layout.lead
    source, index = it.args
    if isinstance(index, slice):
        return _rearranged(step)
    flat = step.flat(source)
    count = it.size(flat.sizes)
    place = it.place(index, count)
    fine = it.within(place, count, "IndexError: list index out of range")
    behind = it.scalar(torch.scalar_tensor, count, dtype=torch.int64)
    safe = it.scalar(torch.where, fine, place, behind)
    sizes = step.longer(flat)
    element = it.node.meta["val"]
    dims = [_size_at(step, step.column(sizes, dim), safe, element.shape[dim]) for dim in range(lead)]
    start = it.scalar(GET, step.starts(step.counts(sizes)), [safe])
    places = step.added(step.digits(None, dims, 0, lead), start, lead)
    return step.read(flat.values, places, element)


def _size_at(step: Step, column: fx.Node, place: fx.Node, size: Any) -> tuple[Any, fx.Node]:
    """The size of one element as a number and as a tensor."""
    scalar = step.it.scalar(GET, column, [place])
    return (size if isinstance(size, int) else step.number(scalar, size)), scalar


# ---- tensors of lists
def _shared_sizes(step: Step, flat: Flat, dims: Sequence[int], text: str) -> list[fx.Node]:
    """The sizes that all elements have to have; zeros where they have not, or there is no element."""
    it = step.it
    it.require(it.number(operator.gt, it.size(flat.sizes), 0, kind=bool), text)
    sizes = step.longer(flat)
    found = []
    for dim in dims:
        first = it.emit(operator.getitem, step.column(sizes, dim), 0, value=it.fakes.scalar(int))
        same = it.scalar(torch.all, it.vector(torch.eq, step.column(flat.sizes, dim), first, kind=bool), kind=bool)
        it.require(same, _SIZES)
        found.append(it.scalar(torch.where, same, first, it.scalar(torch.zeros_like, first)))
    return found


def _stack(step: Step) -> fx.Node:
    it, lead = step.it, step.layout.lead
    rows, dim = (*it.args, 0)[:2]
    dim = it.node.kwargs.get("dim", dim)
    flat = step.flat(rows)
    scalars = _shared_sizes(step, flat, range(lead), "RuntimeError: stack expects a non-empty TensorList")
    sizes = [(step.number(scalar), scalar) for scalar in scalars]
    places = step.digits(None, sizes, 1, lead + 1)
    starts = step.along(step.starts(step.counts(flat.sizes)), 0, lead + 1)
    shape = tuple(it.fakes.count() for _ in range(lead + 1))
    value = it.fakes.rows((*shape, *step.layout.row.shape), step.layout.row)
    stacked = step.read(flat.values, step.added(places, starts, lead + 1), value)
    if dim % value.dim():
        stacked = it.emit("movedim", stacked, 0, dim, value=value.movedim(0, dim))
    return it.emit("clone", stacked, memory_format=torch.contiguous_format, value=it.node.meta["val"])


def _cat(step: Step) -> fx.Node:
    it, lead = step.it, step.layout.lead
    rows, dim = (*it.args, 0)[:2]
    dim = it.node.kwargs.get("dim", dim) % len(step.layout.element.shape)
    if dim >= lead:
        raise it.refuse("torch.cat of a list of tensors whose sizes differ, along a dimension behind those that differ")
    flat = step.flat(rows)
    element = it.node.meta["val"]
    others = [each for each in range(lead) if each != dim]
    shared = _shared_sizes(step, flat, others, "ValueError: expected a non-empty list of Tensors")
    if lead == 1:
        return it.emit("clone", flat.values, value=element)
    sizes = dict(zip(others, ((step.number(scalar, element.shape[d]), scalar) for d, scalar in zip(others, shared))))
    lengths = step.column(flat.sizes, dim)
    total = step.number(it.scalar(torch.sum, lengths), element.shape[dim])
    owners = step.owners(lengths, total)
    inside = it.vector(torch.sub, it.positions(total), step.taken(step.starts(lengths), owners))
    places = step.along(inside, dim, lead)
    if dim:
        before = step.digits(None, [sizes[each] for each in range(dim)], 0, lead)
        wide = step.along(step.taken(lengths, owners), dim, lead)
        places = step.added(step._places(torch.mul, before, wide, axes=lead), places, lead)
    places = step.digits(places, [sizes[each] for each in range(dim + 1, lead)], dim + 1, lead)
    starts = step.along(step.taken(step.starts(step.counts(flat.sizes)), owners), dim, lead)
    return step.read(flat.values, step.added(places, starts, lead), element)


def _values(step: Step) -> fx.Node:
    return step.flat(step.it.args[0]).values


def _sizes(step: Step) -> fx.Node:
    return step.flat(step.it.args[0]).sizes


_PLACES = (operations.popped, operations.deleted, operations.inserted, operations.replaced, operations.taken)

HANDLERS: dict[Any, Callable[[Step], fx.Node | Flat]] = {
    operations.build_list: _build,
    **dict.fromkeys((*_PLACES, operations.repeated), _rearranged),
    len: _length,
    operator.getitem: _item,
    values_of: _values,
    sizes_of: _sizes,
    torch.stack: _stack,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), _cat),
}
