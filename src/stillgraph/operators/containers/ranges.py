"""Ranges of which only the run knows the bounds, their iterators, and `itertools.count`."""

from __future__ import annotations

import itertools
import operator
import re
import sys
from collections.abc import Iterator
from typing import Any, NoReturn, cast

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.dispatch import and_, eq, if_exp, not_, or_
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.values.numbers import StagedNumber

_OUTSIDE = IndexError("range object index out of range")


class Range(Indexed, kind=range):
    """``range(start, stop, step)`` some of whose bounds are staged."""

    __slots__ = ("start", "step", "stop")

    stageable = True

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        super().__init__()
        self.start, self.stop, self.step = start, stop, step
        self._require(step != 0, ValueError("range() arg 3 must not be zero"))

    def length(self) -> Any:
        if all(isinstance(v, int) for v in (self.start, self.stop, self.step)):
            return len(range(self.start, self.stop, self.step))
        capture = capturing()
        steps = self.stop - self.start if _is_one(self.step) else -((self.start - self.stop) // self.step)
        return capture.number_operation(max, (steps, 0)) if isinstance(steps, StagedNumber) else max(steps, 0)

    def at(self, index: Any) -> Any:
        offset = index if _is_one(self.step) else index * self.step
        return offset if isinstance(self.start, int) and self.start == 0 else self.start + offset

    def __len__(self) -> int:
        return self.length()  # type: ignore[no-any-return]  # of Any

    def __eq__(self, other: Any) -> Any:
        if other is self or not isinstance(other, (range, Range)):
            return True if other is self else NotImplemented
        mine, its = self.length(), Range(other.start, other.stop, other.step).length()
        same_step = or_(eq(mine, 1), lambda: eq(self.step, other.step))
        same_parts = or_(eq(mine, 0), lambda: and_(eq(self.start, other.start), lambda: same_step))
        return and_(eq(mine, its), lambda: same_parts)

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not_(equal)

    def __hash__(self) -> int:
        return self.refuse()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            hint = "Give range() the bounds that are wanted."
            raise refuse("SG206", "a range of which only the run knows the length is cut", location=here(), hint=hint)
        length = self.length()
        if isinstance(index, StagedNumber):
            self._require(index >= -length)
            self._require(index < length)
            staged: Any = index
            return self.at(if_exp(staged < 0, lambda: staged + length, lambda: staged))
        if not hasattr(index, "__index__"):
            raise TypeError(f"range indices must be integers or slices, not {type(index).__name__}")
        index = operator.index(index)
        self._require(length > index if index >= 0 else length >= -index)
        return self.at(index if index >= 0 else length + index)

    def __getattr__(self, name: str) -> Any:
        if hasattr(range, name):
            hint = "Work with its bounds, or make it a list."
            message = f"a range of which only the run knows the length is asked for its {name}"
            raise refuse("SG206", message, location=here(), hint=hint)
        raise AttributeError(f"'range' object has no attribute '{name}'")

    @staticmethod
    def _require(inside: Any, error: Exception = _OUTSIDE) -> None:
        capture = session()

        def fail() -> NoReturn:
            if capture is None:
                raise type(error)(*error.args)
            emit_raise(capture, type(error)(*error.args))
            raise Diverged

        if isinstance(inside, StagedNumber):
            assert capture is not None
            branch(capture, inside, lambda: None, fail, (), ())
        elif not inside:
            fail()


def _is_one(step: Any) -> bool:
    return type(step) is int and step == 1


class RangeIterator(Indexed, kind=type(iter(range(0)))):
    """``iter(inner)``, of a range."""

    __slots__ = ("inner",)

    once = stageable = True

    def __init__(self, inner: Range) -> None:
        super().__init__()
        self.inner = inner

    def length(self) -> Any:
        return self.inner.length()

    def at(self, index: Any) -> Any:
        return self.inner.at(index)

    def __length_hint__(self) -> int:
        return self._left()


class Count(Indexed):
    """``itertools.count`` of whole numbers, as a loop runs over it.

    Args:
        counter: the iterator, which the capture has made.
        start: what it gives next.
        step: how much more each time.
    """

    __slots__ = ("_again", "counter", "start", "step")

    stageable = endless = True

    def __init__(self, counter: itertools.count[int], start: int, step: int) -> None:
        super().__init__()
        self.counter, self.start, self.step = counter, start, step
        self._again = False

    @classmethod
    def of(cls, iterable: Any) -> Count | None:
        """The sequence for such a counter; None for anything else."""
        if type(iterable) is not itertools.count or not cast(Session, session()).is_new(iterable):
            return None
        cast(Session, session()).iterators.require_known(iterable)
        numbers = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", repr(iterable))
        return None if numbers is None else cls(iterable, int(numbers[1]), int(numbers[2] or 1))

    def length(self) -> int:
        return sys.maxsize

    def at(self, index: Any) -> Any:
        return self.start + index * self.step

    def begin(self) -> Iterator[Any]:
        if self._again:
            return itertools.count(self.start, self.step)
        self._again = True
        return self.counter
