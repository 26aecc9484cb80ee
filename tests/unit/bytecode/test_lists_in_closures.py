"""Lists in variables around a function: guarded where programs read them, left to Python where they keep changing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.bytecode.segmented import to_partial

X = torch.ones(2)
Made = tuple[Callable[[Tensor], Any], list[float]]


def trainer() -> Any:
    torch.manual_seed(0)
    random.seed(0)
    buffer: list[tuple[Tensor, float]] = []
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train(state: Tensor, reward: float) -> float | None:
        buffer.append((state, reward))
        if len(buffer) < 4:
            return None
        batch = random.sample(buffer, 4)
        states, rewards = torch.stack([each[0] for each in batch]), torch.tensor([each[1] for each in batch])
        loss = ((net(states).squeeze(-1) - rewards) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return train


def test_a_replay_buffer() -> None:
    def losses(train: Callable[[Tensor, float], float | None], programs: list[int]) -> list[float | None]:
        found = []
        for number in range(32):  # what Python gives the generator keeps changing in one segment after the other
            found.append(train(torch.full((3,), float(number % 7)), float(number % 5)))
            programs.append(len(getattr(train, "programs", ())))
        return found

    wanted = losses(trainer(), [])
    programs: list[int] = []
    static = to_partial(trainer())
    assert losses(static, programs) == wanted
    assert static.plan.gave_up is None
    assert len(set(programs[-5:])) == 1, programs


def inner() -> Made:
    b = [1.0]

    def f(x: Tensor) -> Any:
        print("a")
        g = lambda: x * b[0]  # noqa: E731 - the inner function alone reads it
        return g()

    return f, b


def inner_of_inner() -> Made:
    b = [1.0]

    def f(x: Tensor) -> Any:
        print("a")

        def g() -> Any:
            def h() -> float:
                return b[0]

            return x * h()

        return g()

    return f, b


def beside() -> Made:
    b = [1.0]

    def other() -> float:
        return b[0]

    def f(x: Tensor) -> Any:
        print("a")
        return x * other()

    return f, b


def called() -> Made:
    b = [1.0]

    class Times:
        def __call__(self, x: Tensor) -> Any:
            return x * b[0]

    times = Times()

    def f(x: Tensor) -> Any:
        print("a")
        return times(x)

    return f, b


def class_body() -> Made:
    b = [1.0]

    def f(x: Tensor) -> Any:
        print("a")

        class Reading:
            first = b[0]

            def last(self) -> float:
                return b[-1]

        return x * Reading.first + Reading().last()

    return f, b


def generated() -> Made:
    b = [1.0]

    def each() -> Any:
        yield from b

    def f(x: Tensor) -> Any:
        print("a")
        return [x * v for v in each()]

    return f, b


def by_default() -> Made:
    b = [1.0]

    def f(x: Tensor, up: Callable[[], float] = lambda: b[0]) -> Any:
        print("a")
        return x * up()

    return f, b


def decorated() -> Made:
    b = [1.0]

    def times(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda x: function(x) * b[0]

    @times
    def f(x: Tensor) -> Any:
        print("a")
        return x + len(b)

    return f, b


def key_of_sorted() -> Made:
    b = [1.0]

    def f(x: Tensor) -> Any:
        print("a")
        return x * sorted([3.0, 2.0, 1.0], key=lambda v: v * b[0])[0]

    return f, b


READING = [
    *(inner, inner_of_inner, beside, called, class_body, generated, by_default, decorated, key_of_sorted),
]


@pytest.mark.parametrize("make", READING, ids=lambda make: make.__name__)
def test_a_list_that_is_read(make: Callable[[], Made], capsys: pytest.CaptureFixture[str]) -> None:
    function, values = make()
    static = to_partial(function)
    for number in range(8):
        values[0] = float(number // 2) - 1
        if number == 5:
            values.append(7.0)
        wanted, printed = function(X), capsys.readouterr().out
        assert repr(static(X)) == repr(wanted), f"call {number}"
        assert capsys.readouterr().out == printed
    assert static.plan.gave_up is None
