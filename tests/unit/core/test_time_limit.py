from __future__ import annotations

import threading
import time

import pytest

from stillgraph.core.time_limit import TimeIsUp, time_limit


def test_a_block_that_does_not_end() -> None:
    def run() -> None:
        while True:
            pass

    with pytest.raises(TimeIsUp), time_limit(0.05):
        run()


def test_a_block_that_ends_is_not_interrupted_later() -> None:
    with time_limit(0.05):
        pass
    time.sleep(0.2)


def test_what_the_block_raises_is_its_own() -> None:
    with pytest.raises(KeyboardInterrupt), time_limit(60):
        raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError), time_limit(60):
        raise ZeroDivisionError


def test_other_threads_are_not_bounded() -> None:
    ended = []

    def run() -> None:
        with time_limit(0.01):
            time.sleep(0.1)
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended
