"""Captures and the calls of other threads: one capture at a time, and no call that sees one half done."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator


class Captures:
    """Who is capturing in this process.

    A capture runs the user's code on the user's own objects, which hold tensors without data until it ends. Calls of
    other threads keep away from them by two rules: what is read of Python's state counts only if no capture was under
    way (`version` is even, and was the same before), and what is written is written in a block of `exclusive`. So a
    call holds nothing while its program runs, and cannot block a capture.

    Attributes:
        version: how many captures have begun and ended; odd while there is one.
    """

    __slots__ = ("_depth", "_lock", "_owner", "version")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._reset()
        os.register_at_fork(after_in_child=self._after_fork)

    def _reset(self) -> None:
        self.version = 0
        self._owner: int | None = None
        self._depth = 0

    def _after_fork(self) -> None:
        """A process that is forked while another thread captures has no such thread: nobody would ever let go."""
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]  # as Python's own modules do it
        self._reset()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """A block that runs while no other thread captures or is in such a block."""
        with self._lock:
            yield

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        """A block that captures; captures of one thread may nest."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._owner = threading.get_ident()
                self.version += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._owner = None
                    self.version += 1

    def settled(self) -> int:
        """The version, as soon as no other thread is capturing."""
        version = self.version
        while version & 1 and self._owner != threading.get_ident():
            with self._lock:
                version = self.version
        return version
