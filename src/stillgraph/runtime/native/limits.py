"""A limit to how often a program's regions begin: one whose loop's test is always true must not run for ever."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any, TypeVar, cast

R = TypeVar("R")

AT_FIRST = 20_000
"""Regions that may begin before it is looked at how much eager PyTorch runs."""

_TIMES = 10  # a line of the user's may be several regions


class EndlessProgram(BaseException):
    """More regions of a program have begun than its limit allows; no ``except`` of the program's is meant for it.

    Attributes:
        number: of the region that began most often, by `Block.number`.
        begun: how often.
    """

    def __init__(self, number: int, begun: int) -> None:
        super().__init__(number, begun)
        self.number = number
        self.begun = begun


class Visits(list[int]):
    """How often each region began, as a driver counts it.

    Raises:
        EndlessProgram: where it counts further than the limit.
    """

    def __init__(self, regions: int, limit: int) -> None:
        super().__init__([0] * regions)
        self._left = limit

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self._left -= 1
        if self._left < 0:
            begun = max(self)
            raise EndlessProgram(self.index(begun), begun)


def limited(run: Callable[..., R], limit: int) -> Callable[..., R]:
    """A native driver that ends, or another function as it is.

    Args:
        run: what `native.lower` gives, or what has a method ``with_visits``; it goes on without a limit itself.
        limit: how many regions may begin.
    """
    visits = getattr(run, "visits", None)
    with_visits = getattr(run, "with_visits", None)
    if visits is None or not (with_visits or isinstance(run, FunctionType)):
        return run
    counted = Visits(len(visits), limit)
    if with_visits is not None:
        return cast(Callable[..., R], with_visits(counted))
    assert isinstance(run, FunctionType)
    space = {name: counted if value is visits else value for name, value in run.__globals__.items()}
    made = FunctionType(run.__code__, space, run.__name__, run.__defaults__, run.__closure__)
    made.__dict__.update(vars(run), visits=counted)
    return made


class LimitFor:
    """A block that counts the lines of Python that it runs in the functions it calls.

    Attributes:
        limit: how many regions a program may begin that does the same: ten times as many, and some more.
    """

    def __init__(self) -> None:
        self.limit = AT_FIRST
        self._before: Any = None

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._count)

    def __exit__(self, *raised: object) -> None:
        sys.settrace(self._before)

    def _count(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.limit += _TIMES
        return self._count
