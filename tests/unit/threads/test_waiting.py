"""Functions that wait for other threads: Python waits, and what the others do meanwhile is not undone."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

Function = Callable[[Tensor], Any]


def in_time(work: Callable[..., Any], *args: Any, seconds: float = 60) -> Any:
    """What a call gives, in a thread of its own: one that hangs fails."""
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(work(*args)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert given, "it hangs, or has failed"
    return given[0]


def joins() -> Function:
    seen: list[int] = []

    def work() -> None:
        time.sleep(0.05)
        seen.append(1)

    def function(x: Tensor) -> Any:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x + len(seen)

    return function


def joins_at_once() -> Function:
    """The thread writes while what stands behind its start is captured."""

    def function(x: Tensor) -> Any:
        seen: list[int] = []
        kept: dict[str, int] = {}

        def work() -> None:
            for number in range(50):
                seen.append(number)
                kept[str(number)] = number
                time.sleep(0.001)

        thread = threading.Thread(target=work)
        thread.start()
        y = (x + 1) * 2
        thread.join()
        return y + len(seen) + len(kept)

    return function


class Counts:
    def __init__(self) -> None:
        self.count = 0


def writes_an_attribute() -> Function:
    counts = Counts()

    def work() -> None:
        time.sleep(0.05)
        counts.count += 1

    def function(x: Tensor) -> Any:
        timer = threading.Timer(0.01, work)
        timer.start()
        while timer.is_alive():
            time.sleep(0.01)
        return x * counts.count

    return function


class Worker(threading.Thread):
    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x
        self.result = x

    def run(self) -> None:
        time.sleep(0.02)
        self.result = self.x * 3


def of_a_class_of_ones_own() -> Function:
    def function(x: Tensor) -> Any:
        worker = Worker(x)
        worker.start()
        worker.join()
        return worker.result + 1

    return function


def several() -> Function:
    seen: list[int] = []

    def function(x: Tensor) -> Any:
        threads = [threading.Thread(target=seen.append, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        list(map(threading.Thread.join, threads))
        return x + len(seen)

    return function


def of_an_executor() -> Function:
    def function(x: Tensor) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: x + 1).result()

    return function


def mapped() -> Function:
    def function(x: Tensor) -> Any:
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(lambda value: value + 1, [x, x * 2])
            futures = [pool.submit(lambda number=number: x * number) for number in range(3)]
            third = sum(each.result() for each in as_completed(futures))
        return first + second + third

    return function


def of_an_executor_that_fails() -> Function:
    seen: list[int] = []

    def function(x: Tensor) -> Any:
        try:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(seen.append, 1)
                raise ValueError
        except ValueError:
            x = x * 2
        return x + len(seen)

    return function


def of_a_pool() -> Function:
    def function(x: Tensor) -> Any:
        with ThreadPool(2) as pool:
            first, second = pool.map(lambda value: value + 1, [x, x * 2])
            return first + second + pool.apply_async(lambda: x * 3).get()

    return function


def of_a_queue() -> Function:
    waiting: queue.Queue[int] = queue.Queue()
    for number in range(8):
        waiting.put(number)

    def function(x: Tensor) -> Any:
        return x + waiting.get() * 10 + waiting.qsize()

    return function


def fed_by_a_thread() -> Function:
    def function(x: Tensor) -> Any:
        fed: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=lambda: [fed.put(each) for each in (x, x * 2, None)]).start()
        for each in iter(fed.get, None):
            x = x + each
        return x

    return function


def told_by_an_event() -> Function:
    seen: list[int] = []

    def function(x: Tensor) -> Any:
        done = threading.Event()

        def work() -> None:
            time.sleep(0.05)
            seen.append(1)
            done.set()

        threading.Thread(target=work).start()
        done.wait()
        return x + len(seen)

    return function


def told_by_a_condition() -> Function:
    def function(x: Tensor) -> Any:
        condition, ready = threading.Condition(), list[Tensor]()

        def work() -> None:
            with condition:
                ready.append(x * 2)
                condition.notify()

        threading.Thread(target=work).start()
        with condition:
            condition.wait_for(lambda: ready)
        return ready[0] + len(ready)

    return function


def behind_a_barrier_and_a_semaphore() -> Function:
    seen: list[int] = []

    def function(x: Tensor) -> Any:
        barrier, semaphore = threading.Barrier(2), threading.Semaphore(0)

        def work() -> None:
            barrier.wait()
            seen.append(1)
            semaphore.release()

        threading.Thread(target=work).start()
        barrier.wait()
        semaphore.acquire()
        return x + len(seen)

    return function


LOCK = threading.Lock()


def with_a_lock() -> Function:
    seen: list[int] = []

    def work() -> None:
        with LOCK:
            time.sleep(0.1)
            seen.append(1)

    def function(x: Tensor) -> Any:
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.03)
        with LOCK:
            count = len(seen)
        thread.join()
        return x + count

    return function


WAITING = (
    *(joins, joins_at_once, writes_an_attribute, of_a_class_of_ones_own, several, of_an_executor, mapped),
    *(of_an_executor_that_fails, of_a_pool, of_a_queue, fed_by_a_thread, told_by_an_event, told_by_a_condition),
    *(behind_a_barrier_and_a_semaphore, with_a_lock),
)


@pytest.mark.parametrize("make", WAITING)
@pytest.mark.filterwarnings("ignore:.*is captured anew at every call")
def test_waits_as_in_eager(make: Callable[[], Function]) -> None:
    eager, static = make(), sg.to_static(make(), full_graph=False, strict=True, backend="eager")
    for number in (1, 2, 3, -1):
        x = torch.ones(2) * number
        torch.testing.assert_close(in_time(static, x), in_time(eager, x))


@pytest.mark.parametrize("make", WAITING)
def test_is_refused_with_a_full_graph(make: Callable[[], Function]) -> None:
    function = sg.to_static(make(), backend="eager")

    def refused() -> sg.CaptureError:
        with pytest.raises(sg.CaptureError) as caught:
            function(torch.ones(2))
        return caught.value

    error = in_time(refused)
    assert error.reason.code == "SG305"
    assert error.hint


def test_a_queue_of_the_functions_own_is_captured() -> None:
    def function(x: Tensor) -> Any:
        own: queue.Queue[Tensor] = queue.Queue()
        own.put(x)
        own.put(x * 2)
        first = own.get()
        done = threading.Event()
        done.set()
        return first + own.get() + own.qsize() if done.wait() and not own.empty() else first

    static = sg.to_static(function, backend="eager")
    for number in (1, 2):
        x = torch.ones(2) * number
        torch.testing.assert_close(in_time(static, x), function(x))


def test_behind_a_thread_that_runs_the_rest_of_the_call_is_pythons() -> None:
    static = sg.to_static(joins_at_once(), full_graph=False, strict=True, backend="eager")
    in_time(static, torch.ones(2))
    assert not any("add" in str(program) for program in static.programs)
    assert "start" in static.code
    assert static.explain().breaks
