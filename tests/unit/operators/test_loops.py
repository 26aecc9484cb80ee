from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.operators.control_flow.loops import for_, while_
from stillgraph.trace.heap.exits import BREAK, CONTINUE, Exit, Return
from tests.cases.case import Case
from tests.cases.compare import assert_same
from tests.cases.harness import check_static
from tests.unit.trace.agreement import WHILE, N, P, agree, count, program_of

CALLS = (P, N, P * 5)
Z, THREE, FIVE = torch.tensor(0), torch.tensor(3), torch.tensor(5)


# ---- plain
@pytest.mark.parametrize(
    ("exits", "result", "ran", "orelse"),
    [
        ([None, None, None], None, 3, True),
        ([CONTINUE, CONTINUE, None], None, 3, True),
        ([None, BREAK, None], None, 2, False),
        ([None, Return(7), None], 7, 2, False),
        ([], None, 0, True),
    ],
)
def test_plain_loops(exits: list[Exit | None], result: object, ran: int, orelse: bool) -> None:
    for kind in ("for", "while"):
        seen, done = [], []
        items = iter(exits)

        def body(item: object = None, items: Iterator[Exit | None] = items, seen: list[object] = seen) -> Exit | None:
            seen.append(item)
            return next(items)

        def otherwise(done: list[bool] = done) -> None:
            done.append(True)

        if kind == "for":
            exit = for_(range(len(exits)), body, otherwise)
            assert seen == list(range(ran))
        else:
            exit = while_(lambda seen=seen: len(seen) < len(exits), body, otherwise)
        assert len(seen) == ran
        assert bool(done) == orelse
        assert (None if exit is None else exit.value) == result


def test_plain_else_may_leave_too() -> None:
    assert for_([], lambda item: None, lambda: BREAK) is BREAK
    assert while_(lambda: False, lambda: None, lambda: CONTINUE) is CONTINUE


# ---- while
def halve(x: Tensor) -> tuple[Tensor, int]:
    n = 0
    while x.sum() > 1:
        x = x / 2
        n += 1
    return x, n


def walrus(x: Tensor) -> tuple[Tensor, int, Tensor]:
    n = 0
    while (s := x.sum().abs()) > 1:
        x = x / 2
        n += 1
    return x, n, s


def while_else(x: Tensor) -> tuple[Tensor, int]:
    n = 0
    while x.sum() > 1:
        x = x / 2
        n += 1
        if n == 3:
            break
    else:
        n = n + 100
    return x, n


def two_conditions(x: Tensor) -> tuple[Tensor, int]:
    n = 0
    while (x.sum() > 1 and n < 2) or n < 1:
        x = x / 2
        n += 1
    return x, n


def forever(x: Tensor) -> tuple[int, str]:
    n = 0
    while True:
        n += 1
        if n > 2 + x.sum():
            return n, "done"


def changes_kind(x: Tensor) -> tuple[Any, ...]:
    n, b, h = 0, True, 8
    while x.sum() > 1:
        x = x / 2
        n = n + 0.5
        b = b + 1
        h = h / 2
    return n, b, h


def fibonacci(x: Tensor) -> tuple[int, int]:
    a, b = 0, 1
    while x.sum() > 0.5:
        a, b = b, a + b
        x = x / 2
    return a, b


def nested_state(x: Tensor) -> Any:
    state = (x, 0, {"k": 1.0})
    while state[0].sum() > 0.5:
        state = (state[0] / 2, state[1] + 1, {"k": state[2]["k"] * 2})
    return state


def list_state(x: Tensor) -> list[Any]:
    state = [x, 0]
    while state[0].sum() > 0.5:
        state[0] = state[0] / 2
        state[1] += 1
    return state


def grows(x: Tensor) -> tuple[Tensor, int]:
    y = x[:0]
    while y.numel() < 4 and x.sum() > 0:
        y = torch.cat([y, x])
    return y, y.shape[0]


def writes_in_place(x: Tensor) -> tuple[Tensor, Tensor, int]:
    h, out, i = torch.zeros(3), torch.zeros(20), 0
    while i < x.sum() / 2:
        h = h + x
        out[i] = h.sum()
        i += 1
    return out, h, i


def test_test_and_body_run_in_eagers_order() -> None:
    def says(x: Tensor) -> Tensor:
        def test() -> Tensor:
            print("test")
            return x.sum() > 1

        while test():
            print("body")
            x = x / 2
        return x

    agree(says, *CALLS)


def helper_counts(x: Tensor) -> tuple[Tensor, int]:
    n = 0

    def step(v: Tensor) -> Tensor:
        nonlocal n
        n += 1
        return v / 2

    while x.sum() > 0.5:
        x = step(x)
    return x, n


def random_numbers(x: Tensor) -> tuple[Tensor, Tensor]:
    n = 0
    while n < x.sum().abs():
        x = x + torch.rand(3) * 0.1
        n += 2
    return x, torch.rand(1)


# ---- for
def over_range(n: Tensor) -> tuple[int, int]:
    total, i = 0, -5
    for i in range(n):
        total += i
    return total, i


def backwards(n: Tensor) -> int:
    total = 0
    for i in range(n, -1, -2):
        total = total * 10 + i
    return total


def over_rows(x: Tensor) -> Tensor:
    out = x[0] * 0
    for i, v in enumerate(x, 2):
        if v > 4:
            break
        if v == 2:
            continue
        out = out + v * i
    return out


def for_else(x: Tensor) -> tuple[int, str]:
    for i, v in enumerate(x):  # noqa: B007 - as users write it
        if v > 2:
            break
    else:
        return -1, "none"
    return i, "one"


def together(x: Tensor) -> tuple[Tensor, int]:
    out = x[0] * 0
    for i, (a, b) in enumerate(zip(x, x + 1)):  # noqa: B007 - as users write it
        out = out + a * b
    for v in reversed(x):
        out = out * 2 + v
    return out, i


def first_and_best(x: Tensor) -> tuple[int, Tensor | None]:
    best, value = -1, None
    for i, v in enumerate(x):
        if value is None or v > value:
            best, value = i, v
        if value > 2:
            break
    return best, value


def nested_loops(x: Tensor) -> tuple[int, int]:
    t = n = 0
    for i in range(2):
        j = 0
        while x.sum() + j < 8:
            j += 1
            if j % 2 == 0:
                continue
            if j > 3:
                break
            t += i * j
        else:
            t += 1000
        if t > 3000:
            break
        n += j
    return t, n


def return_from_two_loops(x: Tensor) -> tuple[Any, int]:
    for i in (0, 1):
        for v in x:
            if v * i > 1:
                return v, i
        x = x + 1
    return x, -1


def inside_a_branch(x: Tensor) -> tuple[Tensor, int]:
    n = 0
    if x.sum() > 0:
        while x.sum() > 1:
            x = x / 2
            n += 1
    else:
        for _ in x:
            n -= 1
    return x, n


def long_loop(x: Tensor) -> tuple[int, int]:
    n = 0
    for i in range(100):
        n += i
        if n > x.sum() * 10:
            break
    return n, i


@pytest.mark.parametrize(
    "function",
    [
        halve,
        walrus,
        while_else,
        two_conditions,
        forever,
        changes_kind,
        fibonacci,
        nested_state,
        list_state,
        grows,
        writes_in_place,
        helper_counts,
        random_numbers,
        over_rows,
        for_else,
        together,
        first_and_best,
        nested_loops,
        return_from_two_loops,
        inside_a_branch,
        long_loop,
    ],
)
def test_staged_loops(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", [over_range, backwards])
def test_bounds_that_only_the_run_knows(function: Any) -> None:
    agree(function, THREE, Z, FIVE)


def power(x: Tensor, n: Tensor) -> Tensor:
    y = x
    for _ in range(n):
        y = y * x
    return y


def test_gradients_of_zero_and_more_iterations() -> None:
    agree(power, *((P.clone().requires_grad_(), n) for n in (THREE, Z, FIVE)))


def test_what_is_unrolled_and_what_is_not() -> None:
    def known(x: Tensor, n: int) -> Tensor:
        for i in range(n):
            x = x + i
        return x

    assert count(program_of(known, P, 5), WHILE) == 0
    assert count(program_of(known, P, 500), WHILE) == 1
    assert count(program_of(halve, P), WHILE) == 1
    agree(known, (P, 5), (P, 500), (P, 0), programs=3)


def test_a_size_that_is_symbolic_makes_a_staged_loop() -> None:
    def rows(x: Tensor) -> Tensor:
        s = torch.zeros(())
        for i in range(x.shape[0]):
            s = s * 2 + x[i]
        return s

    static = agree(rows, P, torch.arange(5.0), torch.ones(2), torch.ones(0), input_spec=[sg.InputSpec([None])])
    assert count(static.programs[0], WHILE) == 1


def break_of_the_outer_loop(x: Tensor) -> Any:
    count = 0
    while count < 4:
        count += 1
        tries = 0
        while (x > 0).any():
            tries += 1
            if tries > 4:
                break
        else:
            if x.sum() > -3:
                break
            if x.sum() < -30:
                return "low", tries
    return count, tries


def test_a_break_in_else_is_the_outer_loop_s() -> None:
    calls = [(torch.tensor(values),) for values in ([-1.0, 1.0], [-1.0, -1.0], [-2.0, -2.0], [-20.0, -20.0])]
    check_static(Case("break_of_the_outer_loop", lambda: break_of_the_outer_loop, calls))


def skipping(x: Tensor) -> Tensor:
    total = torch.zeros(3, dtype=torch.long)
    while x.sum() < 10:
        x = x + 1
        if x.mean() > 2:
            continue
        total, x = total * 1.5, x + total
    return total


def skipping_numbers(x: Tensor) -> Any:
    total: Any = 0
    while x.sum() < 10:
        x = x + 1
        if x.mean() > 2:
            continue
        total = total + x.sum()
    return total


def test_a_first_iteration_apart_that_may_skip_its_rest() -> None:
    with pytest.raises(sg.CaptureError) as raised:
        sg.to_static(skipping, backend="eager")(torch.ones(3))
    assert raised.value.reason.code == "SG202"
    static = sg.to_static(skipping_numbers, backend="eager")
    for x in (torch.ones(3), -torch.ones(3), torch.ones(3) * 9, torch.zeros(3)):
        assert_same(skipping_numbers(x), static(x))


def pairs_of_the_iteration(x: Tensor) -> Tensor:
    sizes = {"a": 1, "b": 2, "c": 3}
    while x.sum() < 30:
        pairs = enumerate(sizes.items())
        _, (_, first) = next(pairs)
        for place, (_, size) in pairs:
            x = x + place * size
        x = x + first
    return x


def numbers_from_before(x: Tensor) -> Tensor:
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    while x.sum() < 30:
        for place, number in enumerate(numbers):  # of the first iteration alone
            x = x + place * number
        x = x + 1
    return x


def test_an_iterator_is_advanced_in_the_iteration_that_made_it() -> None:
    agree(pairs_of_the_iteration, *CALLS)


def test_an_iteration_advances_what_was_made_before() -> None:
    agree(numbers_from_before, *CALLS)
