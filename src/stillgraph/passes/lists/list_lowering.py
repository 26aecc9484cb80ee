"""Lowering of one operation on a list: the pieces that it is made of, on a tensor with a row for each element."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import call
from stillgraph.passes.regions.values import Fakes, dtype_of, value_of
from stillgraph.program import operations
from stillgraph.program.graphs import arguments
from stillgraph.program.types import ListType, NumberType, TensorType

_STACK = "Make a tensor of the list before it is used or returned, with torch.stack or torch.cat."


def refused(message: str, node: fx.Node) -> BaseException:
    """The error that says why a list has no form."""
    return refuse("SG402", message, location=node.meta.get("location"), hint=_STACK)


class Rows(Fakes):
    """Stand-ins for rows."""

    def rows(self, shape: tuple[Any, ...], row: TensorType) -> torch.Tensor:
        """Rows in memory of their own."""
        return self.tensor(shape, row.dtype, row.device)

    def count(self) -> Any:
        """A number of rows of which nothing is known."""
        count = self.number(int)
        torch._check(count >= 0)
        return count


@dataclass
class Lowering:
    """One operation on a list: what it is made of. New nodes are put before ``node``."""

    fakes: Rows
    module: fx.GraphModule
    node: fx.Node
    of: ListType
    row: TensorType

    # ---- pieces
    @property
    def args(self) -> tuple[Any, ...]:
        return arguments(self.node)

    @property
    def kind(self) -> type | None:
        """The kind of the elements, where they are numbers."""
        return self.of.element.kind if isinstance(self.of.element, NumberType) else None

    def emit(self, target: Any, *args: Any, value: Any, **kwargs: Any) -> fx.Node:
        return call(self.node, target, args, value, **kwargs)

    def rows(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """An operation that gives rows in memory of their own; how many, only the run knows."""
        value = self.fakes.rows((self.fakes.count(), *self.row.shape), self.row)
        return self.emit(target, *args, value=value, **kwargs)

    def scalar(self, target: Any, *args: Any, kind: type = int, **kwargs: Any) -> fx.Node:
        """An operation that gives a tensor without dimensions."""
        return self.emit(target, *args, value=self.fakes.scalar(kind), **kwargs)

    def vector(self, target: Any, *args: Any, kind: type = int, **kwargs: Any) -> fx.Node:
        """An operation that gives a tensor of one dimension."""
        value = self.fakes.tensor((self.fakes.count(),), dtype_of(kind))
        return self.emit(target, *args, value=value, **kwargs)

    def number(self, target: Any, *args: Any, kind: type = int) -> fx.Node:
        return self.emit(target, *args, value=self.fakes.number(kind))

    def size(self, rows: fx.Node, dim: int = 0) -> fx.Node:
        return self.emit("size", rows, dim, value=value_of(rows).shape[dim])

    def sizes(self, rows: fx.Node) -> tuple[Any, ...]:
        """The sizes of one row as arguments."""
        known = value_of(rows).shape[1:]
        return tuple(size if isinstance(size, int) else self.size(rows, dim) for dim, size in enumerate(known, 1))

    def blank(self, rows: fx.Node) -> fx.Node:
        """One row of zeros."""
        value = self.fakes.rows((1, *self.row.shape), self.row)
        shape = (1, *self.sizes(rows))
        return self.emit(torch.zeros, shape, dtype=self.row.dtype, device=self.row.device, value=value)

    def one(self, item: Any) -> fx.Node:
        """An element as one row."""
        value = self.fakes.rows((1, *self.row.shape), self.row)
        if isinstance(item, fx.Node) and isinstance(value_of(item), torch.Tensor):
            return self.emit("unsqueeze", item, 0, value=value_of(item).unsqueeze(0))
        number = self.kind(item) if self.kind is not None and not isinstance(item, fx.Node) else item
        scalar = self.emit(
            torch.full, (), number, dtype=self.row.dtype, device=self.row.device, value=self.fakes.rows((), self.row)
        )
        return self.emit("reshape", scalar, (1,), value=value)

    def require(self, fine: Any, text: str) -> None:
        self.emit(operations.require, fine, text, value=None)

    def place(self, index: Any, count: fx.Node) -> fx.Node:
        """Python's index as a tensor that counts from the front."""
        if not isinstance(index, fx.Node):
            at: Any = index if index >= 0 else self.number(operator.add, count, index)
            return self.scalar(torch.full, (), at, dtype=torch.int64)
        at = self.scalar("to", index, torch.int64) if isinstance(value_of(index), torch.Tensor) else None
        given = at if at is not None else self.scalar(torch.scalar_tensor, index, dtype=torch.int64)
        below = self.scalar(torch.lt, given, 0, kind=bool)
        return self.scalar(torch.where, below, self.scalar(torch.add, given, count), given)

    def within(self, place: fx.Node, count: fx.Node, text: str) -> fx.Node:
        """Whether there is an element at a place; it is required that there is."""
        low = self.scalar(torch.ge, place, 0, kind=bool)
        fine = self.scalar(torch.logical_and, low, self.scalar(torch.lt, place, count, kind=bool), kind=bool)
        self.require(fine, text)
        return fine

    def positions(self, count: fx.Node) -> fx.Node:
        return self.vector(torch.arange, count)

    def as_mask(self, flags: fx.Node) -> fx.Node:
        """A truth value for each row, in a shape that meets the rows."""
        shape = (-1, *(1 for _ in self.row.shape))
        value = self.fakes.tensor((value_of(flags).shape[0], *shape[1:]), torch.bool)
        return self.emit("reshape", flags, shape, value=value)

    def sliced(self, rows: fx.Node, part: slice) -> fx.Node:
        """A copy of some of the rows."""
        value = value_of(rows)
        part = slice(*(self._as_number(bound) for bound in (part.start, part.stop, part.step)))
        cut = self.emit(operator.getitem, rows, part, value=value)  # the same memory, which is what matters of it
        return self.rows("clone", cut, memory_format=torch.contiguous_format)

    def _as_number(self, bound: Any) -> Any:
        """A bound of a slice; a truth value as the number that it is."""
        if not isinstance(bound, fx.Node) or not isinstance(value_of(bound), torch.SymBool):
            return bound
        return self.number("item", self.scalar(torch.scalar_tensor, bound, dtype=torch.int64))

    def refuse(self, message: str) -> BaseException:
        return refused(message, self.node)
