"""Locks that a capture takes and gives back: it really does, for other threads run beside it."""

from __future__ import annotations

import threading
from _multiprocessing import SemLock  # type: ignore[import-not-found]  # typeshed has no stub for it
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.trace.elsewhere import Elsewhere
from stillgraph.trace.frames import here

WRITTEN_IN_C = (type(threading.Lock()), type(threading.RLock()), SemLock)
LOCKS = (*WRITTEN_IN_C, threading.Condition, threading.Semaphore)
_TAKING, _GIVING_BACK = ("acquire", "__enter__"), ("release", "__exit__")
_HINT = "Give it back in the function, with the lock in a with statement; or take it outside."


class Locks:
    """The locks that the code has taken and not given back so far.

    Args:
        elsewhere: tells which locks were there before the capture.
    """

    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        self._taken: list[Any] = []
        self._taken_unseen: list[Any] = []  # by code that is not rewritten, which may have failed to
        self._taken_at: Location | None = None  # the last one

    def note(self, lock: Any, method: str, result: Any) -> None:
        """Told that a lock's method has been called, and what it gave."""
        if method in _TAKING and result is not False:
            self._taken.append(lock)
            self._taken_at = here()
        elif method in _GIVING_BACK and lock in self._taken:
            self._taken.remove(lock)

    def has_taken(self, lock: Any) -> bool:
        """Whether the code has taken a lock and not given it back so far."""
        return lock in self._taken

    def is_given_back_unseen(self, lock: Any, method: str) -> bool:
        """Told that code that is not rewritten is about to call a lock's method.

        Returns:
            Whether that gives back a lock that something from before the capture has taken: no other attempt could.
        """
        if method == "acquire":
            self._taken_unseen.append(lock)
        elif method == "release":  # of a ``with`` statement only the end would be seen
            held = next((each for each in (self._taken_unseen, self._taken) if lock in each), None)
            if held is None:
                return self._elsewhere.was_there(lock)
            held.remove(lock)
        return False

    def require_given_back(self) -> None:
        """To be called when the code has come to its end: the next call would find a lock taken, or wait for it.

        Raises:
            CaptureError: a lock from before the capture is still taken.
        """
        kept = [*self._taken, *filter(_is_taken, self._taken_unseen)]
        if any(map(self._elsewhere.was_there, kept)):
            message = "a lock is taken, and not given back in the same call"
            raise refuse("SG305", message, location=self._taken_at, hint=_HINT)

    def give_back(self) -> None:
        """Release the locks that are still taken, the last one first."""
        while self._taken:
            self._taken.pop().release()
        while self._taken_unseen:
            lock = self._taken_unseen.pop()
            if _is_taken(lock):
                lock.release()


def _is_taken(lock: Any) -> bool:
    """Whether this thread has taken a lock; of a plain one, which belongs to no thread, whether any has."""
    is_mine = getattr(lock, "_is_owned", None) or getattr(lock, "_is_mine", None) or lock.locked
    return bool(is_mine())


def is_taken_by_others(lock: Any) -> bool:
    """Whether taking a lock of C's would have to wait."""
    taken = lock.acquire(False)
    if taken:
        lock.release()
    return not taken
