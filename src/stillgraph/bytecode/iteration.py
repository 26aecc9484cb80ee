"""What a ``for`` loop runs over, between the instruction that asks for its iterator and the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Iteration:
    """An iterable whose iterator is not made yet: the operators want to know what it is that is run over.

    It is made where the loop is run by jumps, an iteration at a time.
    """

    values: Any
    begun: Iterator[Any] | None = field(default=None)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.begun is None:
            self.begun = iter(self.values)
        return next(self.begun)
