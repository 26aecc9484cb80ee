from __future__ import annotations

import queue
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.options import Options
from stillgraph.trace.code.signals import Diverged, Restart
from tests.unit.trace.agreement import IF, N, P, agree, count, program_of, refusal


def test_there_is_no_session_outside_a_capture() -> None:
    seen: queue.SimpleQueue[Any] = queue.SimpleQueue()  # of which a capture cannot tell what it holds

    @sg.not_to_static
    def look() -> None:
        seen.put(session())

    def function(x: Tensor) -> Tensor:
        look()
        return x

    assert session() is None
    program_of(function, P)
    assert seen.get() is not None
    assert session() is None


@pytest.mark.parametrize("signal", [Restart("convert", set()), Diverged()])
def test_user_code_cannot_catch_our_signals(signal: BaseException) -> None:
    assert not isinstance(signal, Exception)


def test_a_bare_except_of_an_exception_is_no_obstacle() -> None:
    def cautious(x: Tensor) -> Tensor:
        try:
            y = x * 2
        except Exception:
            y = x
        return y if y.sum() > 0 else -y

    agree(cautious, P, N)


def left_alone(x: Tensor) -> Tensor:
    return x.sum() * 2


def test_not_to_static_runs_a_function_as_it_is() -> None:
    sg.not_to_static(left_alone)

    def caller(x: Tensor) -> Tensor:
        return left_alone(x) if x.sum() > 0 else x

    def asks(x: Tensor) -> Tensor:
        return conditional(x) * 2

    @sg.not_to_static
    def conditional(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    agree(caller, P, N)
    assert refusal(asks, P).reason.code == "SG301"


def test_a_static_function_inside_another_is_part_of_it() -> None:
    @sg.to_static(backend="eager")
    def inner(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x

    @sg.to_static(backend="eager")
    def outer(x: Tensor) -> Tensor:
        y = inner(x)
        while y.sum() > 3:
            y = y / 2
        return y

    for x in (P, N):
        y = x * 2 if x.sum() > 0 else x
        while y.sum() > 3:
            y = y / 2
        assert torch.equal(outer(x), y)
    assert inner.cache_info().programs == 0
    assert outer.cache_info().programs == 1
    assert count(outer.programs[0], IF) == 1


def test_a_number_read_and_written_is_an_input() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        def __call__(self, x: Tensor) -> Tensor:
            self.n += 1
            return x * self.n

    counter = Counter()
    static = sg.to_static(counter, backend="eager")
    for n in range(1, 5):
        assert torch.equal(static(P), P * n)
        assert counter.n == n
    assert static.cache_info().programs == 1
    assert [i.kind for i in static.programs[0].inputs].count("state") == 1


def test_a_number_that_something_structural_needs_is_a_constant() -> None:
    class Grower:
        def __init__(self) -> None:
            self.names = ["a", "b", "c"]
            self.n = 0

        def __call__(self, x: Tensor) -> dict[str, Tensor]:
            self.n += 1
            return {self.names[self.n - 1]: x * self.n}

    grower = Grower()
    static = sg.to_static(grower, backend="eager")
    for n in (1, 2, 3):
        (pair,) = static(P).items()
        assert pair[0] == "abc"[n - 1]
        assert torch.equal(pair[1], P * n)
    assert grower.n == 3


def test_options() -> None:
    assert Options().unroll_limit == 64
    with pytest.raises(ValueError, match="unroll_limit"):
        sg.to_static(left_alone, unroll_limit=-1)
