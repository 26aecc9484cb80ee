"""What a ``for`` loop runs over, between the instruction that asks for its iterator and the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Iteration:
    """An iterable whose iterator is not made yet: the operators want to know what it is that is run over.

    Where a loop is run by its jumps, an iteration at a time, a sequence is run over by its index, which can be kept.

    Attributes:
        values: the iterable.
        index: how many of a sequence's elements have been given.
    """

    values: Any
    index: int = 0
    _begun: Iterator[Any] | None = field(default=None)

    @property
    def can_wait(self) -> bool:
        """Whether it can be put away and taken up again."""
        return type(self.values) in _SEQUENCES

    @property
    def begun(self) -> bool:
        """Whether something was taken from it."""
        return self.index > 0 or self._begun is not None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.can_wait:
            if self.index >= len(self.values):
                raise StopIteration
            self.index += 1
            return self.values[self.index - 1]
        if self._begun is None:
            self._begun = iter(self.values)
        return next(self._begun)


_SEQUENCES = (list, tuple, range, str, bytes)
