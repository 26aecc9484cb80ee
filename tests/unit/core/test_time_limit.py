from __future__ import annotations

import contextlib
import signal
import threading
import time

import pytest

from stillgraph.core.time_limit import TimeIsUp, time_limit


def endless() -> None:
    while True:
        pass


def test_a_block_that_does_not_end() -> None:
    with pytest.raises(TimeIsUp), time_limit(0.05):
        endless()


def test_a_block_that_ends_is_not_interrupted_later() -> None:
    with time_limit(0.05):
        pass
    time.sleep(0.2)


def test_what_the_block_raises_is_its_own() -> None:
    with pytest.raises(KeyboardInterrupt), time_limit(60):
        raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError), time_limit(60):
        raise ZeroDivisionError


def test_other_threads_are_bounded_too() -> None:
    ended = []

    def run() -> None:
        with pytest.raises(TimeIsUp), time_limit(0.05):
            endless()
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended


def test_signals_may_be_ignored() -> None:
    """As those of a job in the background are."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(TimeIsUp), time_limit(0.05):
            endless()
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_of_the_block_let_it_pass() -> None:
    def run() -> None:
        while True:
            with contextlib.suppress(Exception):
                endless()

    with pytest.raises(TimeIsUp), time_limit(0.05):
        run()


def test_what_comes_late_does_not_leave_the_block() -> None:
    """The time is up just as the block ends by an exception of its own."""
    for wait in (0.004, 0.005, 0.006):
        for _ in range(5):
            with contextlib.suppress(TimeIsUp, ZeroDivisionError), time_limit(0.005):
                time.sleep(wait)
                raise ZeroDivisionError
    time.sleep(0.1)
