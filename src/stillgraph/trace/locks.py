"""Locks that a capture takes and gives back: it really does, for other threads run beside it."""

from __future__ import annotations

import threading
from _multiprocessing import SemLock  # type: ignore[import-not-found]  # typeshed has no stub for it
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.trace.elsewhere import Elsewhere
from stillgraph.trace.frames import here
from stillgraph.trace.journal import CellPlace, GlobalPlace, Journal, Place, is_same

WRITTEN_IN_C = (type(threading.Lock()), type(threading.RLock()), SemLock)
LOCKS = (*WRITTEN_IN_C, threading.Condition, threading.Semaphore)
_TAKING, _GIVING_BACK = ("acquire", "__enter__"), ("release", "__exit__")
_HINT = "Give it back in the function, with the lock in a with statement; or take it outside."
_WRITING_HINT = "Write it outside of the static function, or capture the function with full_graph=False."


class Locks:
    """The locks that the code has taken and not given back so far.

    Args:
        elsewhere: tells which locks were there before the capture.
        journal: of the capture.
    """

    def __init__(self, elsewhere: Elsewhere, journal: Journal) -> None:
        self._elsewhere = elsewhere
        self._journal = journal
        self._taken: list[Any] = []
        self._marks: list[tuple[Any, int]] = []  # of the journal, where locks were taken
        self._taken_unseen: list[Any] = []  # by code that is not rewritten, which may have failed to
        self._taken_at: Location | None = None  # the last one

    def note(self, lock: Any, method: str, result: Any) -> None:
        """Told that a lock's method has been called, and what it gave.

        Raises:
            CaptureError: as `left`.
        """
        if method in _TAKING and result is not False:
            self._taken.append(lock)
            self._taken_at = here()
            self.entered(lock)
        elif method in _GIVING_BACK and lock in self._taken:
            self._taken.remove(lock)
            self.left(lock)

    def entered(self, lock: Any) -> None:
        """Told that a lock has been taken."""
        self._marks.append((lock, self._journal.mark))

    def left(self, lock: Any) -> None:
        """Told that a lock has been given back.

        Raises:
            CaptureError: what was there before has been written meanwhile. A program reads what it needs when it
                begins and writes when it ends, and takes no lock: what another thread writes between would be lost.
        """
        index = next((index for index, (each, _) in reversed([*enumerate(self._marks)]) if each is lock), None)
        if index is None:
            return
        _, mark = self._marks.pop(index)
        if not self._elsewhere.was_there(lock):
            return
        for write in self._journal.written(mark).values():
            if not is_same(write.place.get(), write.before) and self._is_shared(write.place):
                message = f"{write.place} is written while a lock is held, which a program does not take"
                raise refuse("SG305", message, location=here(), hint=_WRITING_HINT)

    def _is_shared(self, place: Place) -> bool:
        """Whether another thread may come upon a place."""
        if isinstance(place, CellPlace):
            return self._elsewhere.was_there(place.cell)
        target = getattr(place, "target", None)
        return isinstance(place, GlobalPlace) or (target is not None and self._elsewhere.was_there(target))

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


def is_lock(value: Any) -> bool:
    """Whether an object keeps other threads or processes out while it is taken."""
    return isinstance(value, LOCKS) or type(value).__module__ == "multiprocessing.synchronize"


def pairs(function: Any) -> bool:
    """Whether a function is the method of a lock that takes it or gives it back."""
    name = getattr(function, "__name__", None)
    return name in (*_TAKING, *_GIVING_BACK) and is_lock(getattr(function, "__self__", None))


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
