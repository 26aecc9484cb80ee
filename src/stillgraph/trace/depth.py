"""How deep calls of the user's may go in a capture: as deep as without it, however many frames of ours are between."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from stillgraph.core.files import is_ours

_FRAMES = 16  # at most, of ours for each of the user's


class Depth:
    """Counts the calls of the user's functions that a capture is in.

    Attributes:
        limit: Python's own, which the capture raises for its own frames.
    """

    def __init__(self) -> None:
        self.limit = sys.getrecursionlimit()
        self._left = self.limit - _frames()

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """A block in which Python takes more frames. A limit that the user's code sets inside stays, as in eager."""
        raised = self.limit * _FRAMES
        sys.setrecursionlimit(raised)
        try:
            yield
        finally:
            if sys.getrecursionlimit() == raised:
                sys.setrecursionlimit(self.limit)

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


def _frames() -> int:
    """How many frames there are that are not ours."""
    count, frame = 0, sys._getframe(1)
    while True:
        count += not is_ours(frame.f_code.co_filename)
        if frame.f_back is None:
            return count
        frame = frame.f_back
