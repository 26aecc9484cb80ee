"""Locks that other threads take as well: what is read and written in their blocks is read and written there."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.importing import installed
from tests.unit.bytecode.segmented import held, to_partial
from tests.unit.threads.test_threads import together

LOCKS: dict[str, Callable[[], Any]] = {
    "Lock": threading.Lock,
    "RLock": threading.RLock,
    "Condition": threading.Condition,
    "Semaphore": threading.Semaphore,
    "BoundedSemaphore": threading.BoundedSemaphore,
    "multiprocessing.Lock": multiprocessing.Lock,
    "multiprocessing.RLock": multiprocessing.RLock,
}


@pytest.fixture(autouse=True)
def _often_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Own:
    """A lock of the user's."""

    def __init__(self) -> None:
        self.inner = threading.Lock()

    def __enter__(self) -> Own:
        self.inner.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.release()


class Counter(nn.Module):
    """Counts its calls."""

    def __init__(self, make: Callable[[], Any], how: Callable[[Counter, Tensor], Any]) -> None:
        super().__init__()
        self.lock, self.how = make(), how
        self.calls, self.seen = 0, []

    def forward(self, x: Tensor) -> Any:
        return self.how(self, x * 2) - 1

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        with self.lock:
            yield

    def counted(self) -> None:
        with self.lock:
            self.calls += 1


def in_a_block(m: Counter, x: Tensor) -> Any:
    with m.lock:
        m.calls += 1
        x = x + 1
    return x


def by_hand(m: Counter, x: Tensor) -> Any:
    m.lock.acquire()
    try:
        m.calls += 1
        return x + 1
    finally:
        m.lock.release()


def by_a_method_that_is_kept(m: Counter, x: Tensor) -> Any:
    take, give_back = functools.partial(m.lock.acquire), m.lock.release
    take()
    m.calls += 1
    give_back()
    return x


def in_a_manager(m: Counter, x: Tensor) -> Any:
    with m.locked():
        m.calls += 1
    return x


def in_an_exit_stack(m: Counter, x: Tensor) -> Any:
    with contextlib.ExitStack() as stack:
        stack.enter_context(m.lock)
        m.calls += 1
    return x


def in_an_exit_stack_that_calls_back(m: Counter, x: Tensor) -> Any:
    with contextlib.ExitStack() as stack:
        m.lock.acquire()
        stack.callback(m.lock.release)
        m.calls += 1
    return x


def below_a_decorator(m: Counter, x: Tensor) -> Any:
    @m.locked()
    def counted() -> None:
        m.calls += 1

    counted()
    return x


def by_a_partial(m: Counter, x: Tensor) -> Any:
    functools.partial(m.lock.acquire)()
    calls = m.calls
    for _ in range(20):
        x = x * 1.0
    m.calls = calls + 1
    functools.partial(m.lock.release)()
    return x


def by_the_class(m: Counter, x: Tensor) -> Any:
    type(m.lock).acquire(m.lock)
    m.calls += 1
    type(m.lock).release(m.lock)
    return x


def in_a_function(m: Counter, x: Tensor) -> Any:
    m.counted()
    return x + 1


def in_a_loop(m: Counter, x: Tensor) -> Any:
    for number in range(2):
        with m.lock:
            m.calls += number
        x = x + number
    return x


def where_a_tensor_decides(m: Counter, x: Tensor) -> Any:
    if x.sum() > 0:
        with m.lock:
            m.calls += 1
        x = x + 1
    return x


def in_a_loop_that_a_tensor_ends(m: Counter, x: Tensor) -> Any:
    count = torch.zeros(())
    while x.sum() < 20:
        x, count = x * 2, count + 1
        with m.lock:
            m.calls += x.sum().item() >= 20
    return x


def where_the_run_raises(m: Counter, x: Tensor) -> Any:
    try:
        with m.lock:
            m.calls += 1
            if x.sum() > 0:
                raise ValueError("positive")
    except ValueError:
        x = x + 1
    return x


def a_list(m: Counter, x: Tensor) -> Any:
    with m.lock:
        m.seen[:] = [*m.seen, 1]
        m.calls = len(m.seen)
    return x


WAYS = [
    *(in_a_block, by_hand, by_a_method_that_is_kept, in_a_manager, in_an_exit_stack, in_a_function, in_a_loop),
    *(where_a_tensor_decides, in_a_loop_that_a_tensor_ends, where_the_run_raises, a_list),
    *(in_an_exit_stack_that_calls_back, below_a_decorator, by_a_partial, by_the_class),
]


def counts(static: Any, module: Any, times: int = 200, threads: int = 4) -> None:
    """Several threads call together; none of them is forgotten."""
    x = torch.ones(2)
    before = module.calls
    static(x), static(x)
    assert module.calls == before + 2

    def calls() -> None:
        for _ in range(times):
            static(x)

    assert together(calls, times=threads) == [None] * threads
    assert module.calls == before + 2 + threads * times


@pytest.mark.parametrize("how", WAYS, ids=lambda each: each.__name__)
def test_no_call_is_lost(how: Any) -> None:
    module = Counter(threading.Lock, how)
    counts(to_partial(module), module)


@pytest.mark.parametrize("make", LOCKS.values(), ids=LOCKS)
@pytest.mark.parametrize("how", [in_a_block, by_hand])
def test_of_each_kind(make: Callable[[], Any], how: Any) -> None:
    module = Counter(make, how)
    counts(to_partial(module), module, times=50)


def test_a_lock_of_ones_own() -> None:
    module = Counter(Own, in_a_block)
    counts(to_partial(module), module)


def test_what_lies_between_is_captured() -> None:
    module = Counter(threading.Lock, in_a_block)
    static = to_partial(module)
    for _ in range(3):
        static(torch.ones(2))
    plan = held(static).plan
    assert len(plan.segments) == 3
    assert not plan.gave_up


LOCK, CALLS = threading.Lock(), 0


def test_a_global() -> None:
    def function(x: Tensor) -> Tensor:
        global CALLS
        with LOCK:
            CALLS += 1
        return x + 1

    counts(to_partial(function), _Global())


class _Global:
    @property
    def calls(self) -> int:
        return CALLS


WAITED_FOR: Any = None


@pytest.mark.parametrize("make", LOCKS.values(), ids=LOCKS)
def test_a_global_of_each_kind(make: Callable[[], Any]) -> None:
    """Also another one that comes in its place."""

    def function(x: Tensor) -> Tensor:
        with WAITED_FOR:
            y = x * 2
        return y + 1

    global WAITED_FOR
    WAITED_FOR = before = make()
    static = to_partial(function)
    for number in (1, 2, 3):
        torch.testing.assert_close(static(torch.ones(2) * number), torch.ones(2) * number * 2 + 1)
    WAITED_FOR = make()
    with before:
        (value,) = together(lambda: static(torch.ones(2)))
    torch.testing.assert_close(value, torch.ones(2) * 3)


# ---- first calls together
def by_an_inner_function(m: Counter, x: Tensor) -> Any:
    with m.lock:
        calls = m.calls
        for _ in range(20):
            x = x * 1.0

        def put() -> None:
            m.calls = calls + 1

        put()
    return x


@pytest.mark.parametrize("how", [in_a_block, by_a_partial, by_an_inner_function])
def test_first_calls_together(how: Any) -> None:
    """A call that looks why no program fits it is not to look at what another thread's capture has put there."""
    for _ in range(6):
        module = Counter(threading.Lock, how)
        static = to_partial(module)

        def calls(static: Any = static) -> None:
            for _ in range(10):
                static(torch.ones(2))

        assert together(calls, times=4) == [None] * 4
        assert type(module.calls) is int


LIBRARY = """
    import threading

    class Counter:
        def __init__(self):
            self.lock, self.calls = threading.Lock(), 0

        def count(self):
            with self.lock:
                self.calls += 1
            return self

        def look(self):
            with self.lock:
                return self.calls >= 0
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "counting_of_stillgraph_tests", LIBRARY, monkeypatch)


def test_a_library_that_counts(library: Any) -> None:
    counter = library.Counter()

    def function(x: Tensor) -> Tensor:
        counter.count()
        return x + 1

    counts(to_partial(function), counter)


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_library_that_writes_nothing_stays_in_the_program(library: Any, full_graph: bool) -> None:
    counter = library.Counter()
    static = sg.to_static(lambda x: x + counter.look(), full_graph=full_graph, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(static(torch.ones(2)), torch.ones(2) + 1)
    assert static.cache_info().programs == 1


# ---- exceptions
def test_an_exception_gives_the_lock_back() -> None:
    """One that a capture knows of, one that only the run raises, and one of an operation."""
    lock = threading.Lock()

    def function(x: Tensor, index: Tensor, raises: bool) -> Tensor:
        with lock:
            if raises:
                raise KeyError("told")
            if x.sum() > 100:
                raise ValueError("large")
            return x[index] + 1

    static = to_partial(function)
    x, one = torch.ones(2), torch.tensor([1])
    for _ in range(3):
        for args, error in (
            ((x, one, True), KeyError),
            ((x * 100, one, False), ValueError),
            ((x, one * 7, False), IndexError),
        ):
            with pytest.raises(error):
                static(*args)
            assert not lock.locked()
        torch.testing.assert_close(static(x, one, False), torch.tensor([2.0]))
        assert not lock.locked()


# ---- with a full graph
REFUSED = [
    *(in_a_block, by_hand, in_a_manager, in_a_function, in_a_loop, a_list, in_an_exit_stack),
    *(in_an_exit_stack_that_calls_back, by_a_partial, by_the_class),
]


@pytest.mark.parametrize("how", REFUSED)
def test_a_full_graph_that_writes_is_refused(how: Any) -> None:
    module = Counter(threading.Lock, how)
    for _ in range(2):
        with pytest.raises(sg.CaptureError, match="is written while a lock is held") as caught:
            sg.to_static(module, backend="eager")(torch.ones(2))
        assert caught.value.reason.code == "SG305"
        assert module.calls == 0
        assert not module.lock.locked()


@pytest.mark.parametrize("make", LOCKS.values(), ids=LOCKS)
def test_a_full_graph_refuses_each_kind(make: Callable[[], Any]) -> None:
    """Semaphores and conditions in any case: they wait for other threads."""
    with pytest.raises(sg.CaptureError, match=r"is written while a lock is held|to do with other threads") as caught:
        sg.to_static(Counter(make, in_a_block), backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"


LOCK_OF_A_DECORATOR = threading.Lock()


@contextlib.contextmanager
def locked() -> Iterator[None]:
    with LOCK_OF_A_DECORATOR:
        yield


class Decorated:
    def __init__(self) -> None:
        self.calls = 0

    @locked()
    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + 1

    @locked()
    def look(self, x: Tensor) -> Tensor:
        return x + self.calls


def test_a_full_graph_refuses_to_write_below_a_decorator() -> None:
    target = Decorated()
    for _ in range(2):
        with pytest.raises(sg.CaptureError) as caught:
            sg.to_static(target.forward, backend="eager")(torch.ones(2))
        assert caught.value.reason.code == "SG305"
        assert target.calls == 0
        assert not LOCK_OF_A_DECORATOR.locked()
    static = sg.to_static(target.look, backend="eager")
    for target.calls in (1, 2):
        torch.testing.assert_close(static(torch.ones(2)), torch.ones(2) + target.calls)


def test_no_call_is_lost_below_a_decorator() -> None:
    target = Decorated()
    counts(to_partial(target.forward), target)


def test_what_was_written_is_put_back_before_the_lock_is_given_back() -> None:
    """Whoever waits for the lock finds what was there, not what stands for it in a capture."""

    def keeps(m: Counter, x: Tensor) -> Tensor:
        with m.lock:
            m.last = x * 2
        return x

    module = Counter(threading.Lock, keeps)
    before = module.last = torch.ones(2)
    static = sg.to_static(module, backend="eager")
    found, goes_on = set(), True

    def captures() -> None:
        nonlocal goes_on
        for _ in range(5):
            with contextlib.suppress(sg.CaptureError):
                static(torch.ones(2))
        goes_on = False

    def looks() -> None:
        while goes_on:
            with module.lock:
                found.add(id(module.last))

    assert together(captures, looks) == [None, None]
    assert found <= {id(before)}


def test_a_full_graph_writes_what_the_call_makes() -> None:
    def function(x: Tensor) -> Any:
        made, total = [], 0
        with LOCK:
            made.append(x)
            total += len(made)
        own = threading.Lock()
        with own:
            made.append(x * 2)
        return made, total

    static = sg.to_static(function, backend="eager")
    for number in (1, 2):
        x = torch.ones(2) * number
        torch.testing.assert_close(static(x), function(x))
