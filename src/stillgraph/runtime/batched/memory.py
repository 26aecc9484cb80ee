"""What operations of a batched run write to.

A group of some of the lanes works on copies. What it has written to them is written back, and where a copy could be
seen in another way, the run resists: two values of a group that share memory, a result that shares memory with what the
group was given, a tensor that all lanes share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from stillgraph.runtime.batched.values import Batch, Lanes, Resists, leaves, mapped, selected


class Memory:
    """Knows which memory is not the program's own: that of its inputs and constants."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        self._foreign: set[int] = set()
        for each in inputs:
            self.add_foreign(each)

    def add_foreign(self, value: Any) -> None:
        """A value that outlives the call."""
        self._foreign.update(_memory(each) for each in tensors_in(value))

    def check_write(self, value: Any) -> None:
        """Refuse to write to what outlives the call."""
        if any(_memory(each) in self._foreign for each in tensors_in(value)):
            raise Resists("a tensor that outlives the call is written in place")

    def each_its_own(self, result: Any, lanes: int) -> Any:
        """A result that is the same for all lanes, once for each where it has memory of its own: it may be written."""

        def of(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or _memory(leaf) in self._foreign:
                return leaf
            return Batch(leaf.expand(lanes, *leaf.shape).clone())

        return mapped(of, result)

    def check_fresh(self, result: Any, given: Any) -> None:
        """Refuse a result that shares memory with what it was made of: it is about to be copied."""
        known = {_memory(each) for each in tensors_in(given)}
        if any(_memory(each) in known for each in tensors_in(result)):
            raise Resists("a view is made for some of the lanes, of a tensor that may be written in place")

    def check_apart(self, values: Any) -> None:
        """Refuse values that share memory with each other: they are about to be copied."""
        own = [number for number in map(_memory, tensors_in(values)) if number not in self._foreign]
        if len(set(own)) < len(own):
            raise Resists("tensors that share memory, of which one may be written in place, are taken apart")


class Part:
    """Values of some of the lanes, as copies."""

    def __init__(self, memory: Memory, values: tuple[Any, ...], positions: Sequence[int]) -> None:
        """Take them.

        Raises:
            Resists: two of them share memory, or are of more than one shape.
        """
        self._memory = memory
        self._whole, self._positions = values, positions
        copied = [leaf for leaf in leaves(values) if type(leaf) is Batch]
        memory.check_apart(copied)
        memory.check_fresh([leaf for leaf in leaves(values) if type(leaf) is not Batch], copied)
        self.values: tuple[Any, ...] = selected(values, positions, stack=False)
        self._versions = [_version(leaf) for leaf in leaves(self.values)]

    def close(self, outputs: Any, kept: int = 0) -> None:
        """Write back what was written to the copies.

        Args:
            outputs: what was made of them, which goes on living.
            kept: how many of the values, from the first, must not have been written to.
        """
        self._memory.check_apart(outputs)
        self._memory.check_fresh(outputs, self.values[kept:])
        unchanged = len(list(leaves(self.values[:kept])))
        copies = zip(leaves(self._whole), leaves(self.values), self._versions, strict=True)
        for index, (base, copy, version) in enumerate(copies):
            if type(copy) is not Batch or _version(copy) == version:
                continue
            if index < unchanged:
                raise Resists("what a loop carries is written in place while some lanes are done")
            self._memory.check_write(base)
            place = torch.tensor(self._positions, device=base.tensor.device)
            base.tensor.index_copy_(0, place, copy.tensor)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a value, of all its lanes."""
    found: list[Tensor] = []
    for leaf in leaves(value):
        if type(leaf) is Batch:
            found.append(leaf.tensor)
        elif type(leaf) is Lanes:
            for each in leaf.values:
                found += tensors_in(each)
        elif isinstance(leaf, Tensor):
            found.append(leaf)
    return found


def _memory(tensor: Tensor) -> int:
    try:
        number: int = tensor.untyped_storage()._cdata
        return number
    except (NotImplementedError, RuntimeError):  # a sparse tensor, or one of a transform
        raise Resists("a tensor whose memory is not known, in a program that writes in place") from None


def _version(value: Any) -> int | None:
    return value.tensor._version if type(value) is Batch else None
