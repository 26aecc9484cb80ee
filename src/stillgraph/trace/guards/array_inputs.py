"""numpy's arrays and numbers that are inputs of a program: tensors of their memory stand for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stillgraph.program.facts.values import is_value
from stillgraph.program.guards import AliasGuard, Guard, TypeGuard
from stillgraph.program.sources import Memory, Source
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray


@dataclass(frozen=True)
class _Input:
    """An array that is an input: itself, the first place where it is, and what stands for it."""

    array: Any
    source: Source
    staged: StagedArray

    def could_be(self, other: Any) -> bool:
        """Whether one array could be found in place of this one and another, whatever their sizes are."""
        return bool(self.array.dtype == other.dtype and self.array.ndim == other.ndim)


@dataclass(frozen=True)
class ArrayInputs:
    """The arrays and numbers of numpy's that are inputs.

    Attributes:
        known: the arrays, by their ids.
    """

    known: dict[int, _Input] = field(default_factory=dict)

    def guards(self, value: Any, source: Source) -> list[Guard]:
        """Guards on an array or number that becomes an input, besides those on its tensor: its class, its identity."""
        if id(value) in self.known:
            return [AliasGuard(self.known[id(value)].source, source, same=True)]
        others = [] if is_value(value) else [each for each in self.known.values() if each.could_be(value)]
        return [TypeGuard(source, type(value)), *(AliasGuard(each.source, source, same=False) for each in others)]

    def given(
        self, value: Any, source: Source, finder: Finder, add: Callable[[torch.Tensor, Source], torch.Tensor]
    ) -> StagedArray:
        """What the code finds in place of an array or number.

        Args:
            value: the array or number.
            source: where it is.
            finder: of the capture.
            add: makes an input of a tensor.
        """
        if id(value) in self.known:
            return self.known[id(value)].staged
        is_number = is_value(value)
        staged = StagedArray(add(Memory.of(value), Memory(source)), is_number)
        if not is_number:
            self.known[id(value)] = _Input(value, source, staged)
            finder.stand_in(staged, source, value)
        return staged

    def apart(self, read: Sequence[tuple[Any, Source]], may_be_input: Callable[[Source], bool]) -> list[Guard]:
        """Guards on the arrays being none of those that are no inputs.

        Args:
            read: the arrays and buffers whose contents are guarded, and where they are.
            may_be_input: whether what is at a source may become an input, and is none yet.

        Raises:
            Restart: one of them is an input as well, which the code takes for another object.
        """
        found: list[Guard] = []
        for other, place in read if self.known else ():
            mine = self.known.get(id(other))
            if mine is not None:
                raise Restart("promote", place) if may_be_input(place) else Restart("object", mine.source)
            alike = [each for each in self.known.values() if is_array(other) and each.could_be(other)]
            found += [AliasGuard(each.source, place, same=False) for each in alike]
        return found
