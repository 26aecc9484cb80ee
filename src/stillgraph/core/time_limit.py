"""A bound on how long a block may run, such as a loop whose end depends on values."""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections.abc import Iterator


class TimeIsUp(Exception):
    """A block ran longer than it may."""


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt the block once it has run for so long, as Ctrl-C would.

    Python looks for interrupts between two of its instructions, so an operation of torch's that runs is not cut short.

    Args:
        seconds: how long the block may run; None for no bound. There is none outside of the main thread, which alone
            can be interrupted.

    Raises:
        TimeIsUp: the block was interrupted.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    running, up = threading.Lock(), threading.Event()

    def interrupt() -> None:
        if running.acquire(blocking=False):  # the block has not ended meanwhile
            up.set()
            _thread.interrupt_main()

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
        if not running.acquire(blocking=False):  # the interrupt is on its way
            up.wait()
            threading.Event().wait(1)
    except KeyboardInterrupt:
        if not up.is_set():
            raise
        raise TimeIsUp from None
    finally:
        timer.cancel()
        running.acquire(blocking=False)
