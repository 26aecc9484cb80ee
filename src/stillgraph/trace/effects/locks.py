"""Locks that a capture takes and gives back: it really does, for other threads run beside it."""

from __future__ import annotations

import threading
from _multiprocessing import SemLock  # type: ignore[import-not-found]  # typeshed has no stub for it
from dataclasses import dataclass
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.trace.code.frames import here
from stillgraph.trace.effects.elsewhere import Elsewhere
from stillgraph.trace.heap.contents import is_same
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import CellPlace, GlobalPlace, Place

WRITTEN_IN_C = (type(threading.Lock()), type(threading.RLock()), SemLock)
LOCKS = (*WRITTEN_IN_C, threading.Condition, threading.Semaphore)
_TAKING, _GIVING_BACK = ("acquire", "__enter__"), ("release", "__exit__")
_HINT = "Give it back in the function, with the lock in a with statement; or take it outside."
_WRITING_HINT = "Write it outside of the static function, or capture the function with full_graph=False."


@dataclass(frozen=True, eq=False)
class _Taken:
    """A lock that has been taken.

    Attributes:
        lock: the lock.
        mark: of the journal, when it was.
        at: the line, or the line of the user's that has called what did it.
    """

    lock: Any
    mark: int
    at: Location | None


class Locks:
    """The locks that the code has taken and not given back so far.

    `ExecutedCode` tells of each call of a method of a lock of C's, whatever code makes it. A ``with`` statement of code
    that is not rewritten takes a lock past it, and what C code calls is past it as well: then only one half is seen.

    Args:
        elsewhere: tells which locks were there before the capture.
        journal: of the capture.
    """

    def __init__(self, elsewhere: Elsewhere, journal: Journal) -> None:
        self._elsewhere = elsewhere
        self._journal = journal
        self._taken: list[_Taken] = []

    def before(self, lock: Any, method: str) -> bool:
        """To be called before a method of a lock of C's.

        Returns:
            Whether it gives back a lock that nothing was seen to take.

        Raises:
            CaptureError: it gives back a lock, and what was there before has been written meanwhile.
        """
        if method in _TAKING:
            self._taken.append(_Taken(lock, self._journal.mark, here()))
        elif method in _GIVING_BACK:
            last = self._last(lock)
            if last is None:
                return True
            self._require_unwritten(last)  # before other threads go on, which would find what the capture has written
            self._taken.remove(last)
        return False

    def not_taken(self, lock: Any) -> None:
        """Told that a call to take a lock has not: another thread has it."""
        last = self._last(lock)
        if last is not None:
            self._taken.remove(last)

    def _last(self, lock: Any) -> _Taken | None:
        return next((each for each in reversed(self._taken) if each.lock is lock), None)

    def _require_unwritten(self, taken: _Taken) -> None:
        """Refuse what is written while a lock from before is held.

        A program reads what it needs when it begins and writes when it ends, and takes no lock: what another thread
        writes between would be lost.
        """
        written = self._shared_written_since(taken.mark)
        if written is not None and self._elsewhere.was_there(taken.lock):
            message = f"{written} is written while a lock is held, which a program does not take"
            raise refuse("SG305", message, location=here() or taken.at, hint=_WRITING_HINT)

    def _shared_written_since(self, mark: int) -> Place | None:
        """A place that another thread may come upon, and that the capture has written since."""
        writes = self._journal.written(mark).values()
        found = (each.place for each in writes if not is_same(each.place.get(), each.before))
        return next(filter(self._is_shared, found), None)

    def _is_shared(self, place: Place) -> bool:
        """Whether another thread may come upon a place."""
        if isinstance(place, CellPlace):
            return self._elsewhere.was_there(place.cell)
        target = getattr(place, "target", None)
        return isinstance(place, GlobalPlace) or (target is not None and self._elsewhere.was_there(target))

    def has_taken(self, lock: Any) -> bool:
        """Whether the code has taken a lock and not given it back so far."""
        return self._last(lock) is not None

    def is_given_back_unseen(self, lock: Any, method: str) -> bool:
        """Whether a lock that nothing was seen to take matters to other threads as it is given back.

        Of ``release`` it does in any case: no other attempt could give back what something from before has taken. The
        end of a ``with`` statement has its beginning in the same code; but what was written in it is not to be lost.
        """
        is_block = method == "__exit__"
        matters = (not is_block or self._shared_written_since(0) is not None) and self._elsewhere.was_there(lock)
        if matters and is_block:
            self._taken.append(_Taken(lock, 0, here()))  # `give_back` does it: the call is not going to be made
        return matters

    def require_given_back(self) -> None:
        """To be called when the code has come to its end: the next call would find a lock taken, or wait for it.

        Raises:
            CaptureError: a lock from before the capture is still taken; or nobody has seen when it was given back, and
                what was there before has been written since it was taken.
        """
        for each in self._taken:
            if not _is_taken(each.lock):
                self._require_unwritten(each)
            elif self._elsewhere.was_there(each.lock):
                message = "a lock is taken, and not given back in the same call"
                raise refuse("SG305", message, location=each.at, hint=_HINT)

    def give_back(self) -> None:
        """Release the locks that are still taken, the last first: what the capture has written is undone by then."""
        while self._taken:
            lock = self._taken.pop().lock
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
