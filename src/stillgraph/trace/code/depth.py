"""How deep calls of the user's may go in a capture: as deep as without it, however many frames of ours are between."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import cast

from stillgraph.core.files import is_ours, is_torch

_FRAMES = 16  # at most, of ours for each of the user's


class Depth:
    """Counts the calls of the user's functions that a capture is in.

    Attributes:
        limit: Python's own, which the capture raises for its own frames.
    """

    def __init__(self) -> None:
        self.limit = sys.getrecursionlimit()
        self._left = self.limit - _frames()

    def raised(self) -> AbstractContextManager[None]:
        """A block in which Python takes more frames: code that the capture follows runs there, or code of ours."""
        return _limited(self.limit * _FRAMES)

    def of(self, code: CodeType, is_rewritten: Callable[[CodeType], bool]) -> AbstractContextManager[None]:
        """A block in which this code is called: it goes as deep as in eager PyTorch if nothing of ours is between."""
        file = code.co_filename
        return self.raised() if is_rewritten(code) or is_torch(file) or is_ours(file) else self.as_eager()

    def as_eager(self) -> AbstractContextManager[None]:
        """A block for code that the capture does not follow: without frames of ours it goes as deep as eager."""
        return _limited(_all_frames() + max(self._left, 0))

    def enter(self) -> None:
        """A function of the user's is about to run.

        Raises:
            RecursionError: Python would not run it.
        """
        self._left -= 1
        if self._left <= 0:
            raise RecursionError("maximum recursion depth exceeded")

    def leave(self) -> None:
        """It has ended, or was not run."""
        self._left += 1


@contextlib.contextmanager
def _limited(limit: int) -> Iterator[None]:
    """A block with another limit of Python's. One that the user's code sets inside stays, as it does in eager."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        if sys.getrecursionlimit() == limit:
            sys.setrecursionlimit(before)


def _all_frames() -> int:
    count, frame = 0, cast("FrameType | None", sys._getframe())
    while frame is not None:
        count, frame = count + 1, frame.f_back
    return count


def _frames() -> int:
    """How many frames there are that are not ours."""
    count, frame = 0, sys._getframe(1)
    while True:
        count += not is_ours(frame.f_code.co_filename)
        if frame.f_back is None:
            return count
        frame = frame.f_back
