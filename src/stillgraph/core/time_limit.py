"""A bound on how long a block may run, such as a loop whose end depends on values."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator


class TimeIsUp(Exception):
    """A block ran longer than it may."""


class _Interrupted(BaseException):
    """What is raised in the block: handlers of ``Exception`` let it pass."""


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt the block once it has run for so long, in whatever thread, and whether signals are ignored or not.

    Python looks for what is raised from outside between two of its instructions, so an operation of torch's that runs
    is not cut short, and neither is one that waits.

    Args:
        seconds: how long the block may run; None for no bound.

    Raises:
        TimeIsUp: the block was interrupted.
    """
    if seconds is None:
        yield
        return
    thread, running, sent, arrived = threading.get_ident(), threading.Lock(), threading.Event(), False

    def interrupt() -> None:
        if running.acquire(blocking=False):  # the block has not ended meanwhile
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interrupted))
            sent.set()

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        try:
            yield
        except _Interrupted:
            arrived = True
            raise
        finally:
            timer.cancel()
            if not running.acquire(blocking=False) and not arrived:
                sent.wait()
                threading.Event().wait(1)  # it arrives here, and nowhere behind the block
    except _Interrupted:
        raise TimeIsUp from None
