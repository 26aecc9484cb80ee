"""Loops over generators that decide by tensors what they yield."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.operators.control_flow.generators import generator_of
from tests.sampling import few
from tests.unit.trace.agreement import N, P, agree, refusal

LIMIT = 1.5


def loud(rows: Any, limit: float) -> Iterator[Tensor]:
    for row in rows:
        if row.abs() > limit:
            yield row * 2


def halves(x: Tensor) -> Iterator[Tensor]:
    while x.abs().max() > 0.5:
        x = x / 2
        yield x


def forever() -> Iterator[int]:
    count = 0
    while True:
        yield count
        count += 1


def in_turn(x: Tensor) -> Iterator[Tensor]:
    yield x
    yield from loud(x, LIMIT)
    if x.sum() > 0:
        yield x * 3
        return
    yield x * 4


def talkative(x: Tensor) -> Iterator[Tensor]:
    for row in x:
        print("before", row)
        if row > 0:
            yield row
            print("after", row)
    print("end")


def summed(x: Tensor) -> Any:
    total = torch.zeros(())
    count = 0
    for row in loud(x, LIMIT):
        total = total + row
        count += 1
    return total, count


def with_break(x: Tensor) -> Any:
    total = x * 0
    for half in halves(x):
        total = total + half
        if total.sum() > 4:
            break
    else:
        total = -total
    return total


def with_return(x: Tensor) -> Any:
    for index, row in enumerate(x):
        for value in loud(row.reshape(1), LIMIT):
            if value > 4:
                return index, value
    return -1, x.sum()


def with_continue(x: Tensor) -> Any:
    seen = []
    for value in in_turn(x):
        if value.dim() == 0:
            continue
        seen.append(value)
    return seen


def of_another(x: Tensor) -> Any:
    out = x * 0
    for value in loud(loud(x, LIMIT), 5):
        out = out + value
    return out


def endless(x: Tensor) -> Any:
    for count in forever():
        x = x / (count + 1)
        if x.abs().max() < 0.3:
            break
    return x, count


def collected(x: Tensor) -> Any:
    return list(halves(x)), tuple(loud(x, LIMIT)), sum(loud(x, LIMIT))


def asked(x: Tensor) -> Any:
    return (
        any(row > 2 for row in x),
        all(row > -2 for row in x),
        any(float(row) > 2 for row in loud(x, LIMIT)),
        sum(row for row in x if row > 0),
        max((float(row) for row in x if row > 0), default=-1.0),
        sorted(float(row) for row in x if row > 1),
        [row + 1 for row in (r * 2 for r in x if r > 0)],
    )


def printed(x: Tensor) -> Any:
    for row in talkative(x):
        print("got", row)
        if row > 1.5:
            break
    return x


def lazily(x: Tensor) -> Any:
    """Nothing runs before it is asked for."""
    values = talkative(x)
    print("made")
    if x.sum() > 0:
        print("asked")
        for value in values:
            return value
    return x


def nested_loops(x: Tensor) -> Any:
    best = x[0] * 0
    for a in loud(x, 0.5):
        for b in loud(x, LIMIT):
            if a * b > best:
                best = a * b
    return best


def numbered(x: Tensor) -> Any:
    total = x.sum() * 0
    for i, row in enumerate(loud(x, LIMIT), start=1):
        total = total + i * row
    return total, sum(map(abs, loud(x, LIMIT)))


def constant(x: Tensor) -> Any:
    """Drawn from as Python does it."""
    numbers = forever()
    first, second = next(numbers), next(numbers)
    pairs = zip(numbers, x)
    return first, second, [n * row for n, row in pairs], dict(enumerate(v for v in "ab"))


def left_in_another(x: Tensor) -> Any:
    """Left in what a generator runs for another."""
    total = x[0] * 0
    for value in in_turn(x):
        if value.dim() == 0 and value > 2:
            break
        total = total + value.sum()
    return total


def before_another(x: Tensor) -> Iterator[Tensor]:
    for row in x:
        if row > 1:
            yield row
            print("went on")
    yield from x[:2]
    print("at its end")


def counted(x: Tensor) -> Iterator[int]:
    for number in range(x.dim() + 2):
        if x.dim() > 0:
            yield number


def left_on_a_path(x: Tensor) -> Any:
    """What the generator does behind a ``yield`` is not done where the loop was left in it."""
    for row in before_another(x):
        if row > 2:
            return row, "left"
        print("got", row)
    return x.sum(), "at the end"


def first_of(x: Tensor) -> Any:
    for row in loud(x, LIMIT):
        y = row * 2
        break
    else:
        y = x.sum()
    return y + 1


FUNCTIONS = [
    *(left_in_another, left_on_a_path, first_of),
    *(summed, with_break, with_return, with_continue, of_another, endless, collected, asked, printed, lazily),
    *(nested_loops, numbered, constant),
]


@pytest.mark.parametrize("function", few(FUNCTIONS, slow=(left_on_a_path, nested_loops)))
def test_as_in_eager(function: Any) -> None:
    agree(function, P, N, P / 4, torch.tensor([0.2, -3.0, 7.0]))


def test_an_exception_of_a_loop_is_none_of_the_generators() -> None:
    def function(x: Tensor) -> Any:
        try:
            for row in x.shape and counted(x):
                raise StopIteration(row)
        except StopIteration as error:
            return error.value, x
        return x

    agree(function, P)


def test_gradients() -> None:
    agree(summed, *(torch.tensor(v, requires_grad=True) for v in ([1.0, 2.0, -3.0], [0.1, 0.2, 9.0])))


def test_without_a_capture_it_is_a_generator() -> None:
    made = generator_of(range(4), lambda x: x * 2, lambda x: x % 2)
    assert inspect.isgenerator(made)
    assert list(made) == [2, 6]


def used_again(x: Tensor) -> Any:
    values = halves(x)
    total = x * 0
    for value in values:
        total = total + value
        if total.sum() > 1:
            break
    for value in values:
        total = total - value
    return total


def stepwise(x: Tensor) -> Any:
    """The first is found by a loop that it ends: only the run knows where the generator stands then."""
    values = halves(x)
    return next(values) + next(values)


def drawn_in_both_arms(x: Tensor) -> Any:
    values = halves(x)
    total = x * 0
    if x.sum() > 0:
        for value in values:
            total = total + value
    else:
        for value in values:
            total = total - value
    return total


def test_each_arm_draws_from_the_beginning() -> None:
    agree(drawn_in_both_arms, P, N)


@pytest.mark.parametrize(("function", "code"), [(used_again, "SG206"), (stepwise, "SG206")])
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, P).reason.code == code


def test_a_finally_runs_where_the_consumer_raises() -> None:
    class Log:
        def __init__(self) -> None:
            self.closed = 0

        def rows(self, x: Tensor) -> Any:
            try:
                yield from x
            finally:
                self.closed = self.closed + 1

        def __call__(self, x: Tensor) -> Any:
            total = x[0] * 0
            for v in self.rows(x):
                if v < 0:
                    raise ValueError
                total = total + v
            return total

    log, eager = Log(), Log()

    def function(x: Tensor) -> Any:
        return log(x)

    static = sg.to_static(function, backend="eager")
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([1.0, -2.0]), torch.tensor([-1.0, 2.0])):
        if bool((x < 0).any()):
            with pytest.raises(ValueError):
                eager(x)
            with pytest.raises(ValueError):
                static(x)
        else:
            assert torch.equal(eager(x), static(x))
        assert log.closed == eager.closed
