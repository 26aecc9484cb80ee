"""State outside the program, exceptions that something else would see, and other processes."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, distributed, nn

from tests.unit.messages.case import refused, told

X = torch.ones(2)
batches = (number for number in range(9))
dice = random.SystemRandom()
history: list[Any] = []


@contextlib.contextmanager
def section() -> Iterator[None]:
    yield from [None]


@refused("SG208", X)
def raised_in_a_generator(x: Tensor) -> Any:
    with section():
        if not x.isfinite().all():
            raise ValueError("not finite")
        return x / x.norm()


@refused("SG208", X)
def raised_in_an_exit_stack(x: Tensor) -> Any:
    with contextlib.ExitStack() as stack:
        stack.enter_context(section())
        if x.sum() > 5:
            raise ValueError("too much")
    return x


@refused("SG305", X)
def an_iterator_from_outside(x: Tensor) -> Any:
    return x + next(batches)


@refused("SG305", X)
def an_iterator_in_a_branch(x: Tensor) -> Any:
    values = iter([1, 2, 3])
    if x.sum() > 0:
        x = x + next(values)
    return x + 1


@refused("SG305", X)
def a_random_object(x: Tensor) -> Any:
    return x * dice.random()


@refused("SG305", X)
def a_file_is_written(x: Tensor) -> Any:
    with open("log.txt", "w") as file:
        file.write("step")
    return x


@refused("SG305", X)
def a_mode_left_switched(x: Tensor) -> Any:
    torch.set_grad_enabled(False)
    return x * 2


@refused("SG305", X)
def a_mode_left_switched_in_a_branch(x: Tensor) -> Any:
    if x.sum() > 0:
        torch.set_grad_enabled(False)
    return x * 2


class Counter:
    def __init__(self) -> None:
        self.calls = 0


counter = Counter()


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        counter.calls += 1
        return gradient * 2


@refused("SG305", torch.ones(2, requires_grad=True))
def read_after_backward(x: Tensor) -> Any:
    Counted.apply(x).sum().backward()
    return x * counter.calls


@refused("SG305", torch.ones(2, requires_grad=True))
def returned_after_backward(x: Tensor) -> Any:
    Counted.apply(x).sum().backward()
    return counter.calls


@refused("SG305", X)
def a_thread(x: Tensor) -> Any:
    worker = threading.Thread(target=print)
    worker.start()
    return x


@told("SG308")
def a_lazy_layer() -> Any:
    import stillgraph as sg

    sg.export(nn.LazyLinear(2), (torch.ones(1, 3),))


@refused("SG309", X)
def in_the_background(x: Tensor) -> Any:
    x = x.clone()
    if not distributed.is_initialized():
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    distributed.all_reduce(x, async_op=True).wait()  # type: ignore[union-attr]  # the user's way
    return x
