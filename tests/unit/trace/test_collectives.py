"""Collectives in a static function, in a group of one process; `tests/e2e/test_distributed.py` has several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable
from torch import Tensor, distributed

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import N, P, agree, agree_fresh, program_of, refusal


@pytest.fixture(scope="module", autouse=True)
def group() -> Iterator[None]:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.fixture
def doubling(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Processes that are as many as two alike: a sum is twice what each has. What was summed is counted."""
    calls: list[str] = []

    def allreduce(group: Any, tensors: list[Tensor], options: Any) -> None:
        calls.append("sum" if options.reduceOp == distributed.ReduceOp.SUM else "other")
        for tensor in tensors:
            tensor.mul_(2)

    monkeypatch.setattr(distributed.ProcessGroup, "allreduce", allreduce)
    return calls


def test_a_collective_runs_with_the_program_and_not_with_the_capture(doubling: list[str]) -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 1
        distributed.all_reduce(y)
        return y + 1

    program = program_of(function, P)
    assert doubling == []
    assert "all_reduce: " in str(program)
    static = sg.to_static(function, backend="eager")
    assert_same([P * 2 + 1, N * 2 + 1], [static(P), static(N)])
    assert doubling == ["sum", "sum"]


def test_what_it_wrote_is_read(doubling: list[str]) -> None:
    def decides(x: Tensor) -> tuple[Tensor, bool]:
        total = x.sum()
        before = bool(total > 10)
        distributed.all_reduce(total, op=distributed.ReduceOp.MAX)
        if total > 10:
            return x * 2, before
        return x, before

    def in_one_arm(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 1
        if x.sum() > 0:
            distributed.all_reduce(tensor=y)
            y = y + 1
        return y, y * 2

    def in_a_loop(x: Tensor) -> tuple[Tensor, int]:
        times, y = 0, x.abs()
        while y.max() < 50:
            distributed.all_reduce(y[:1])
            distributed.all_reduce(y[1:])
            times += 1
        return y, times

    def an_argument(x: Tensor) -> Tensor:
        distributed.all_reduce(x)
        return x * 2

    for function in (decides, in_one_arm, in_a_loop, an_argument):
        agree(function, P, N, P * 3, N)


def test_a_collective_in_place_is_a_write_to_a_buffer(doubling: list[str]) -> None:
    class Averages(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.seen += x
            distributed.all_reduce(self.seen)
            return self.seen * 1 if self.seen.sum() > 0 else -self.seen

    agree_fresh(Averages, P, N, P)


def gathers(x: Tensor) -> list[Tensor]:
    found = [torch.empty_like(x) for _ in range(distributed.get_world_size())]
    distributed.all_gather(found, x)
    distributed.gather(x, found if distributed.get_rank() == 0 else None, dst=0)
    return found


def moves(x: Tensor) -> tuple[Tensor, ...]:
    first, second, third = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    distributed.reduce_scatter_tensor(first, x)
    distributed.all_to_all_single(second, x)
    distributed.all_gather_into_tensor(third, x, group=distributed.group.WORLD)
    distributed.broadcast(third, 0)
    distributed.reduce(third, 0)
    distributed.barrier()
    return first, second, third


def functionally(x: Tensor) -> Tensor:
    return functional.all_reduce(x, "sum", distributed.group.WORLD) * 2


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")  # in the latest torch alone
@pytest.mark.parametrize("function", [gathers, moves, functionally])
def test_each_kind(function: Callable[[Tensor], Any]) -> None:
    agree(function, P, N, torch.zeros(3))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_no_backend_compiles_a_collective_away(backend: str, doubling: list[str]) -> None:
    def function(x: Tensor) -> Tensor:
        y = x.sin() + 1
        distributed.all_reduce(y)
        return (y.cos() * 2).tanh() if y.sum() > 4 else y.cos() - 1

    static = sg.to_static(function, backend=backend)
    for mode in (torch.enable_grad, torch.no_grad):
        with mode():
            for x in (P, N):
                torch.testing.assert_close(static(x), function(x))
    assert len(doubling) == 8


def later(x: Tensor) -> Tensor:
    work = distributed.all_reduce(x, async_op=True)
    work.wait()
    return x


def objects(x: Tensor) -> Tensor:
    found = [None]
    distributed.all_gather_object(found, 3)
    return x * found[0]


def with_gradient(x: Tensor) -> Any:
    return differentiable.all_reduce(x)


@pytest.mark.parametrize(
    ("function", "what"),
    [(later, "async_op=True"), (objects, "all_gather_object is called"), (with_gradient, "all_reduce is called")],
)
def test_what_is_refused(function: Callable[[Tensor], Any], what: str) -> None:
    error = refusal(function, P)
    assert error.reason.code == "SG309"
    assert what in error.message
