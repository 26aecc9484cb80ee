"""Iteration by index: what stands for iterables and iterators whose elements are read by their positions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.dispatch import if_exp
from stillgraph.operators.elements.stand_ins import StandIn
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.heap.places import Variable


class Indexed(StandIn):
    """What the sequences share: iteration by index.

    ``position`` is how far an iterator (what ``iter``, ``enumerate``, ``zip`` and ``reversed`` return) has been
    advanced: a variable, which branches join and loops carry. It is None for what begins anew each time (ranges, rows);
    its value is None where another iterator draws from this one, and `sys.maxsize` behind the end of a list.
    """

    __slots__ = ("__weakref__", "position")

    once = False  # whether it is an iterator
    endless = False  # whether only what is done with an element can end an iteration

    def __init__(self) -> None:
        self.position = Variable("how far an iterator is", 0) if self.once else None

    @property
    def stageable(self) -> bool:
        """Whether `at` takes a staged index."""
        return False

    def length(self) -> Any:
        """The number of elements, an ``int`` or a staged one."""
        raise NotImplementedError  # each kind of sequence has its own

    def at(self, index: Any) -> Any:
        """The element at an index."""
        raise NotImplementedError  # as above

    @property
    def pickable(self) -> bool:
        """Whether a loop that has to be staged may pick elements, one that need not be is better unrolled."""
        return self.stageable

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has been drawn from it."""
        return self.position is None or (is_exactly(self.position.get(), (int,)) and self.position.get() == 0)

    @property
    def at_index(self) -> Any:
        """The index of the element that comes next.

        Raises:
            CaptureError: another iterator draws from this one.
        """
        self.require_own()
        return 0 if self.position is None else self.position.get()

    @property
    def is_known(self) -> bool:
        """Whether the capture knows how many elements are left."""
        return isinstance(self.length(), int) and isinstance(self.at_index, int)

    def begin(self) -> Iterator[Any]:
        """Run over the elements; an iterator goes on where it was left."""
        return self._elements() if self.position is None else self._drawn()

    def advance(self, index: Any) -> None:
        """Told that an element was drawn: the next one is at an index."""
        self._move(index)

    @property
    def may_change(self) -> bool:
        """Whether its length is to be asked anew before each iteration."""
        return False

    @property
    def may_grow(self) -> bool:
        """Whether it runs over a list: once Python's iterator has found no next element, it gives none for ever."""
        return False

    def end(self) -> None:
        """Told that it was asked for a next element, and there was none."""
        if self.position is not None and self.may_grow:
            self._move(sys.maxsize)

    def require_own(self) -> None:
        """Refuse to draw from it where another iterator does.

        Raises:
            CaptureError: one does.
        """
        if self.position is not None and self.position.get() is None:
            raise refuse("SG206", "an iterator is used again that another one draws from", location=here())

    def hand_over(self) -> None:
        """Let another sequence alone draw from this, which is at its beginning."""
        self._move(None)

    def next_(self, *default: Any) -> Any:
        """``next(self)``; ``default`` where there is none.

        Raises:
            StopIteration: there is no next element, and no default.
        """
        capture, index = session(), self.at_index
        assert capture is not None
        self.check(index)

        def take() -> Any:
            value = self.at(index)
            self.advance(index + 1)
            return value

        def missing() -> Any:
            self.end()
            if default:
                return default[0]
            if not capture.in_arm:
                raise StopIteration
            emit_raise(capture, StopIteration())
            raise Diverged

        return if_exp(index < self.length(), take, missing)

    def check(self, index: Any) -> None:
        """To be called before it is asked whether there is an element at an index: Python may raise there."""

    def _move(self, index: Any) -> None:
        capture = session()
        assert self.position is not None
        if capture is None:
            self.position.set(index)
        else:
            capture.journal.write(self.position, index)

    def _there(self, index: Any) -> bool:
        """Whether there is an element at an index."""
        self.check(index)
        there = index < self.length()
        if not isinstance(there, bool):
            raise refuse("SG206", "the number of iterations is only known at run time here", location=here())
        return there

    def _elements(self) -> Iterator[Any]:
        index = 0
        while self._there(index):
            yield self.at(index)
            index += 1

    def _drawn(self) -> Iterator[Any]:
        index = self.at_index
        while self._there(index):
            item = self.at(index)
            self.advance(index + 1)
            yield item
            index = self.at_index
        self.end()

    def _left(self) -> int:
        """How many elements an iterator has left, as its length."""
        length: int = self.length()
        if self.is_fresh:
            return length
        left: int = length - self.at_index if self.is_known else self.refuse()
        return max(left, 0)

    def __iter__(self) -> Iterator[Any]:
        return self if self.once else self.begin()

    def __next__(self) -> Any:
        if not self.once:
            raise TypeError(f"'{type(self).__name__}' object is not an iterator")
        return next(self._drawn())
