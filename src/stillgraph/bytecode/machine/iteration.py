"""What a ``for`` loop runs over, between the instruction that asks for its iterator and the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.containers.drawing import next_of
from stillgraph.operators.containers.watched import items_run_over
from stillgraph.operators.control_flow.closing import before_stop
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.spreads import is_spread
from stillgraph.trace.graph.region import Region


@dataclass(eq=False)
class Iteration:
    """An iterable whose iterator is not made yet: the operators want to know what it is that is run over.

    Where a loop is run by its jumps, an iteration at a time, a sequence is run over by its index, which can be kept.

    Attributes:
        values: the iterable.
        index: how many of a sequence's elements have been given.
        region: where its first element was taken, by the capture.
    """

    values: Any
    index: int = 0
    region: Region | None = None
    _begun: Iterator[Any] | None = field(default=None)

    @property
    def can_wait(self) -> bool:
        """Whether it can be put away and taken up again."""
        return type(self.values) in SEQUENCES

    @property
    def begun(self) -> bool:
        """Whether something was taken from it."""
        return self.index > 0 or self._begun is not None

    def iterator(self) -> Iterator[Any]:
        """The iterator that Python would have made, which has given as much."""
        if not self.can_wait:
            return items_run_over(self.values) if self._begun is None else self._begun
        made: Any = iter(self.values)
        made.__setstate__(self.index)
        return made  # type: ignore[no-any-return]  # of Any

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.can_wait:
            if self.index >= len(self.values):
                raise StopIteration
            self.index += 1
            return self.values[self.index - 1]
        if self._begun is None:
            self._begun = items_run_over(self.values)
        return next(self._begun)


def advanced(iterator: Iterator[Any]) -> Any:
    """The next value of what a loop runs over by its jumps.

    Raises:
        CaptureError: it is not the capture's to advance; or it runs over as many elements as only the run knows.
    """
    capture = session()
    if capture is not None:
        if isinstance(iterator, Iteration) and is_spread(iterator.values):
            raise refuse("SG210", "a loop over a list of unknown length is run by its iterations", location=here())
        if not isinstance(iterator, Iteration):
            iterator = capture.iterators.to_draw_from(iterator)
        elif not iterator.begun:
            iterator.values = capture.iterators.to_draw_from(iterator.values)
            iterator.region = capture.region
        elif iterator.region is not None and iterator.region is not capture.region and not iterator.can_wait:
            before_stop(capture, iterator.iterator())  # in an arm: some iteration before may have been the last
    return next_of(iterator)


SEQUENCES = (list, tuple, range, str, bytes)
