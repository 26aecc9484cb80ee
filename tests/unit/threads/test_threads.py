"""Static functions called from several threads at once."""

from __future__ import annotations

import contextvars
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import stillgraph as sg
from stillgraph.runtime.calls.captures import Captures
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.current import current
from stillgraph.trace.graph.recorder import Recorder
from tests.unit.contexts.modes import default_dtype


@pytest.fixture(autouse=True)
def _often_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*functions: Callable[[], Any], times: int = 1) -> list[Any]:
    """What functions give, or raise, that begin at one moment in threads of their own."""
    functions = functions * times
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = functions[index]()
        except BaseException as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    return results


def halved(x: Tensor) -> Any:
    trips = 0
    while x.sum() > 1:
        x = x * 0.5
        trips += 1
    return x, trips


# ---- first calls
def test_concurrent_first_calls_capture_once() -> None:
    static = sg.to_static(halved, backend="eager")
    results = together(lambda: static(torch.full((4,), 4.0)), times=8)
    assert [trips for _, trips in results] == [4] * 8
    assert static.cache_info()[:3] == (7, 1, 1)


@pytest.mark.parametrize("dynamic", [False, None])
def test_concurrent_first_calls_of_several_kinds(dynamic: bool | None) -> None:
    static = sg.to_static(halved, backend="eager", dynamic=dynamic)
    calls = [lambda size=size: static(torch.ones(size)) for size in range(1, 6)]
    results = together(*calls, times=2)
    for size, (value, trips) in zip([*range(1, 6)] * 2, results):
        expected, count = halved(torch.ones(size))
        assert torch.equal(value, expected)
        assert trips == count
    hits, misses, programs = static.cache_info()[:3]
    assert (hits, misses, programs) == (5, 5, 5) if dynamic is False else programs <= 3  # sizes 0 and 1, first, open


def test_in_a_pool() -> None:
    static = sg.to_static(halved, backend="eager")
    with ThreadPoolExecutor(4) as pool:
        sizes = list(pool.map(lambda size: static(torch.ones(1 + size % 3))[0].numel(), range(60)))
    assert sizes == [1 + size % 3 for size in range(60)]
    assert static.cache_info().programs == 3


# ---- modes
WEIGHT = torch.ones(3, 3, requires_grad=True)


def product(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x @ WEIGHT
    return x @ WEIGHT + torch.zeros(3)


def test_each_thread_has_modes_of_its_own() -> None:
    static = sg.to_static(product, backend="eager")

    def under(mode: Callable[[], Any]) -> set[Any]:
        with mode():
            outputs = [static(torch.ones(3)) for _ in range(20)]
        return {(output.dtype, output.requires_grad, output.is_inference()) for output in outputs}

    modes = (torch.enable_grad, torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16))
    results = together(*[lambda mode=mode: under(mode) for mode in modes], times=2)
    float32 = torch.float32
    plain = [{(float32, True, False)}, {(float32, False, False)}, {(float32, False, True)}]
    expected = [*plain, {(torch.bfloat16, True, False)}]
    assert results == expected * 2
    assert static.cache_info().programs == 4
    assert torch.is_grad_enabled()


def test_the_default_dtype_of_all_threads() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.zeros(2) if x.sum() > 0 else torch.ones(2)

    static = sg.to_static(function, backend="eager")
    for dtype in (torch.float64, torch.float32, torch.float64):
        with default_dtype(dtype):
            results = together(lambda: static(torch.ones(3)).dtype, times=4)
        assert results == [dtype] * 4
    assert static.cache_info().programs == 2


# ---- a capture beside other calls
class Kept(nn.Module):
    """Writes to its attributes, in whose place a capture has tensors without data."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("total", torch.zeros(8))
        self.steps = 0
        self.last: Any = None
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.last = x * 2
        self.total = self.total + x.mean(0).detach()
        self.seen = [x.sum()]
        for layer in self.layers:
            x = layer(x)
            if x.sum() > 0:
                x = x * 0.5
            else:
                x = x + self.total
        return self.norm(x)


def is_whole(model: Kept) -> bool:
    """Whether nothing of a capture is to be seen."""
    held = [model.last, model.total, *model.seen, model.norm.running_mean, *model.parameters()]
    return type(model.steps) is int and not any(map(is_fake, held))


@pytest.mark.parametrize("attempt", range(3))
def test_a_static_call_beside_a_capture_of_the_same_module(attempt: int) -> None:
    model = Kept()
    first = sg.to_static(lambda x: model(x), backend="eager")
    second = sg.to_static(lambda x: model(x) + 1, backend="eager")
    third = sg.to_static(lambda x: model(x) + 2, backend="eager")
    first(torch.ones(4, 8))
    captured = threading.Event()
    calls = []

    def keep_calling() -> list[bool]:
        whole = []
        while not captured.is_set():
            result = first(torch.ones(4, 8))
            calls.append(1)
            whole.append(not is_fake(result))
        return whole

    def capture() -> bool:
        try:
            return not is_fake(second(torch.ones(4, 8))) and not is_fake(third(torch.ones(4, 8)))
        finally:
            captured.set()

    whole, done, again = together(keep_calling, capture, keep_calling)
    assert done is True
    assert all(whole)
    assert all(again)
    assert is_whole(model)
    assert first.cache_info().programs == 1


SIGNALS: dict[str, threading.Event] = {}


@sg.not_to_static
def meet(tell: str, wait_for: str) -> None:
    """Hand over to another thread, out of sight of a capture, which would undo what it sees."""
    SIGNALS[tell].set()
    assert SIGNALS[wait_for].wait(30)


@torch.library.custom_op("stillgraph_tests::meet", mutates_args=())
def meet_in_the_run(x: Tensor) -> Tensor:
    meet("running", "capturing")
    SIGNALS["goes on"].set()
    return x.clone()


meet_in_the_run.register_fake(torch.empty_like)


def test_what_a_call_writes_is_not_lost_to_a_capture() -> None:
    """A call that ends while another thread captures waits with what it writes to Python's state."""
    SIGNALS.update({name: threading.Event() for name in ("running", "capturing", "goes on")})
    model = Kept()

    def counts(x: Tensor) -> Tensor:
        model.steps += 1
        return meet_in_the_run(x)

    def waits(x: Tensor) -> Tensor:
        model.last = x * 2
        meet("capturing", "goes on")
        return x * 1

    runs, captures = sg.to_static(counts, backend="eager"), sg.to_static(waits, backend="eager")
    runs.get_program(torch.ones(3))

    def capture() -> Any:
        assert SIGNALS["running"].wait(30)
        return captures(torch.ones(3))

    results = together(lambda: runs(torch.ones(3)), capture)
    assert [type(result) for result in results] == [Tensor, Tensor]
    assert model.steps == 1
    assert torch.equal(model.last, torch.full((3,), 2.0))


@pytest.mark.parametrize("ask", ["explain_miss", "get_program", "verify", "__call__"])
def test_what_is_asked_of_a_program_waits_for_the_capture_of_another_thread(ask: str) -> None:
    """Until that ends, what it has written stands in the user's objects."""
    SIGNALS.update({name: threading.Event() for name in ("asked", "capturing")})
    model = Kept()
    model.last = None

    def waits(x: Tensor) -> Tensor:
        model.last = x * 2
        meet_once("capturing", "asked")
        return x * 1

    read, captures = sg.to_static(lambda x: x if model.last is None else x + 1, backend="eager"), sg.to_static(waits)
    read(torch.ones(3))
    misses = read.cache_info().misses

    def asked() -> Any:
        assert SIGNALS["capturing"].wait(30)
        threading.Timer(0.2, SIGNALS["asked"].set).start()
        return getattr(read, ask)(torch.ones(3))

    _, found = together(lambda: captures.get_program(torch.ones(3)), asked)
    assert not isinstance(found, (str, BaseException))
    assert read.cache_info().misses == misses


@sg.not_to_static
def meet_once(tell: str, wait_for: str) -> None:
    """As `meet`, in the first attempt at a capture."""
    if not SIGNALS[tell].is_set():
        meet(tell, wait_for)


def test_eager_code_that_only_reads_is_not_disturbed() -> None:
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)])
    x = torch.ones(2, 8)
    expected = model(x)
    captured = threading.Event()

    def capture() -> Any:
        try:
            return sg.to_static(lambda x: model(x) if x.sum() > 0 else x, backend="eager")(x)
        finally:
            captured.set()

    def eager() -> list[bool]:
        same = []
        while not captured.is_set():
            same.append(torch.equal(model(x), expected))
        return same

    result, same = together(capture, eager)
    torch.testing.assert_close(result, expected)
    assert all(same)


def test_nested_static_functions() -> None:
    inner = sg.to_static(lambda x: x * 2 if x.sum() > 0 else x, backend="eager")
    outer = sg.to_static(lambda x: inner(x) + inner(-x), backend="eager")
    results = together(lambda: outer(torch.ones(3)), lambda: inner(torch.ones(3)), times=4)
    assert [result.tolist() for result in results] == [[1.0] * 3, [2.0] * 3] * 4


def test_recursive_static_function() -> None:
    @sg.to_static(backend="eager")
    def reduced(x: Tensor) -> Tensor:
        if x.sum() > 1:
            return reduced(x * 0.5) + 1
        return x

    results = together(lambda: reduced(torch.full((3,), 2.0)).tolist(), times=4)
    assert results == [[3.25] * 3] * 4


# ---- errors
def test_an_error_in_one_thread_is_its_own() -> None:
    def function(x: Tensor, kind: int) -> Tensor:
        if kind == 1:
            raise ValueError("one")
        if kind == 2:
            torch.set_grad_enabled(False)  # refused
        return x * 2 if x.sum() > 0 else x

    static = sg.to_static(function, backend="eager")
    results = together(*[lambda kind=kind: static(torch.ones(3), kind) for kind in range(4)], times=3)
    assert [type(result) for result in results] == [Tensor, ValueError, sg.CaptureError, Tensor] * 3
    assert torch.is_grad_enabled()


class Interrupted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.steps, self.items = nn.Linear(3, 3), 0, [1]

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.items.append(2)
        self.added = x
        if x.sum() > 0:
            self.steps += 5
            x = x * 1
        return self.layer(x)


def leaving(*_: Any) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_an_interrupted_capture_leaves_everything_as_it_was(
    number: signal.Signals, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Interrupted()
    static = sg.to_static(lambda x: model(x), backend="eager")
    before = dict(model.__dict__)
    emit = Recorder.emit

    def interrupted(recorder: Recorder, *args: Any, **kwargs: Any) -> Any:
        if recorder.in_arm:
            signal.raise_signal(number)
        return emit(recorder, *args, **kwargs)

    ended = signal.signal(signal.SIGTERM, leaving)
    try:
        monkeypatch.setattr(Recorder, "emit", interrupted)
        with torch.no_grad(), pytest.raises(error):
            static(torch.ones(2, 3))
    finally:
        signal.signal(signal.SIGTERM, ended)
        monkeypatch.undo()
    assert dict(model.__dict__) == before
    assert model.items == [1]
    assert current() is None
    assert torch.is_grad_enabled()
    assert not StaticFunction.captures.version & 1
    (result,) = together(lambda: static(torch.ones(2, 3)))  # no lock is left behind
    torch.testing.assert_close(result, model.layer(torch.ones(2, 3)))
    assert (model.steps, model.items) == (6, [1, 2])


# ---- where the call comes from
def test_a_copied_context_outside_a_capture() -> None:
    static = sg.to_static(halved, backend="eager")
    context = contextvars.copy_context()
    results = together(lambda: context.copy().run(static, torch.ones(4)), times=3)
    assert [trips for _, trips in results] == [2] * 3


class Halves(Dataset[Tensor]):
    def __init__(self, static: Any) -> None:
        self.static = static

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Tensor:
        return self.static(torch.full((3,), float(index)))[0]


def test_in_the_workers_of_a_data_loader() -> None:
    static = sg.to_static(halved, backend="eager")
    for captured_before in (False, True):
        if captured_before:
            static(torch.ones(3))
        batches = list(DataLoader(Halves(static), batch_size=3, num_workers=2))
        expected = torch.stack([halved(torch.full((3,), float(index)))[0] for index in range(6)])
        assert torch.equal(torch.cat(batches), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_during_a_capture_can_capture() -> None:
    SIGNALS.update({name: threading.Event() for name in ("capturing", "goes on")})

    def waits(x: Tensor) -> Tensor:
        meet("capturing", "goes on")
        return x * 2 if x.sum() > 0 else x

    thread = threading.Thread(target=sg.to_static(waits, backend="eager"), args=(torch.ones(3),))
    thread.start()
    assert SIGNALS["capturing"].wait(30)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if sg.to_static(halved, backend="eager")(torch.ones(4))[1] == 2 else 2
        finally:
            os._exit(status)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        SIGNALS["goes on"].set()
        thread.join()


def test_threads_that_the_function_starts_are_refused() -> None:
    def function(x: Tensor) -> Tensor:
        results = []
        thread = threading.Thread(target=lambda: results.append(x * 2))
        thread.start()
        thread.join()
        return results[0] if x.sum() > 0 else x

    with pytest.raises(sg.CaptureError):
        sg.to_static(function, backend="eager")(torch.ones(3))


# ---- the rules themselves
def test_captures() -> None:
    captures = Captures()
    assert captures.settled() == 0
    with captures.capture():
        assert captures.settled() == captures.version == 1  # its own
        with captures.capture(), captures.exclusive():
            assert captures.version == 1
    assert captures.version == 2
    seen = []
    with captures.capture():
        thread = threading.Thread(target=lambda: seen.append(captures.settled()))
        thread.start()
        thread.join(0.05)
        assert seen == []  # it waits
    thread.join(30)
    assert seen == [4]
