"""Functions that call themselves where only the run knows how often."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.operations import recurse, recursion
from tests.unit.trace.agreement import WHILE, N, P, agree, agree_fresh, count, program_of, refusal


# ---- tail calls
def squared(x: Tensor) -> Tensor:
    if x > 10:
        return x
    return squared(x * x)


def counted(x: Tensor, steps: int = 0) -> tuple[Tensor, int]:
    if x.abs() < 1:
        return x, steps
    return counted(x / 2, steps=steps + 1)


def greatest_divisor(a: Tensor, b: Tensor) -> Tensor:
    if b == 0:
        return a
    return greatest_divisor(b, a % b)


def three_ways(x: Tensor, y: Tensor) -> Tensor:
    if x > 10:
        return y
    elif x < -10:
        return three_ways(x + 30, y - 1)
    y = y + x
    if y > 0:
        return three_ways(x + 4, y)
    return three_ways(x + 5, y * 2)


def search(values: Tensor, wanted: Tensor, low: int, high: int) -> int:
    if low >= high:
        return low
    middle = (low + high) // 2
    if values[middle] < wanted:
        return search(values, wanted, middle + 1, high)
    return search(values, wanted, low, middle)


def growing(x: Tensor) -> Tensor:
    if x.sum() > 10:
        return x
    return growing(torch.cat([x, x[-1:] + 1]))


def collecting(x: Tensor, seen: tuple[Any, ...] = ()) -> Any:
    if x > 4:
        return torch.stack(list(seen)) if seen else x
    return collecting(x + 1, seen)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (squared, [(torch.tensor(v),) for v in (2.0, 11.0, 1.5)]),
        (counted, [(torch.tensor(v),) for v in (0.5, 100.0, -3.0)]),
        (greatest_divisor, [(torch.tensor(a), torch.tensor(b)) for a, b in ((12, 18), (7, 5), (4, 0))]),
        (three_ways, [(torch.tensor(v), torch.tensor(-v)) for v in (1.0, -40.0, 20.0)]),
        (search, [(torch.arange(9999), torch.tensor(v), 0, 9999) for v in (0, 5, 9998, 20000)]),
        (growing, [(torch.ones(1),), (torch.full((1,), 11.0),)]),
        (collecting, [(torch.tensor(v),) for v in (1.0, 9.0)]),
    ],
)
def test_tail_calls_become_a_loop(function: Any, calls: list[Any]) -> None:
    agree(function, *calls)
    program = program_of(function, *calls[0])
    assert count(program, WHILE) >= 1
    assert count(program, recursion) == 0


# ---- other calls
def halving(x: Tensor, depth: int = 0) -> Tensor:
    if x.abs().sum() < 1 or depth > 5:
        return x
    return halving(x[:2] * 0.4, depth + 1) + halving(x[1:] * 0.3, depth + 1)


def factorial(n: Tensor) -> Tensor:
    if n <= 1:
        return torch.ones_like(n)
    return n * factorial(n - 1)


def fibonacci(n: Tensor) -> int:
    if n < 2:
        return int(n)
    return fibonacci(n - 1) + fibonacci(n - 2)


def power(x: Tensor, n: Tensor) -> Tensor:
    if n == 0:
        return torch.ones_like(x)
    half = power(x, n // 2)
    if n % 2 == 1:
        return half * half * x
    return half * half


def ackermann(m: Tensor, n: Tensor) -> Tensor:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, n + 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def is_even(n: Tensor) -> bool:
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n: Tensor) -> bool:
    if n == 0:
        return False
    return is_even(n - 1)


def with_a_closure(x: Tensor) -> Any:
    count = 0
    best = x[0]
    seen = []

    def visit(value: Tensor, depth: int) -> None:
        nonlocal count, best
        count += 1
        seen.append(value)
        if value > best:
            best = value
        if depth < 3 and value.abs() > 0.5:
            visit(value / 2, depth + 1)
            visit(value * -0.7, depth + 1)

    for row in x:
        visit(row, 0)
    return count, best, seen


def pairs(x: Tensor) -> tuple[Tensor, dict[str, Any]]:
    if x < 1:
        return x, {"depth": 0}
    value, info = pairs(x - 1)
    return value + x, {"depth": info["depth"] + 1}


def maybe(x: Tensor) -> Tensor | None:
    if x < 0:
        return None
    rest = maybe(x - 1)
    if rest is None:
        return x
    return rest + x


def printing(x: Tensor) -> Tensor:
    if x > 3:
        print("end", x)
        return x
    print("down", x)
    y = printing(x + 1) * 2
    print("up", x)
    return y


def failing(x: Tensor) -> Tensor:
    if x > 3:
        raise ValueError("too deep")
    if x < -3:
        return x
    return failing(x * 2) + 1


def in_a_loop(x: Tensor) -> Tensor:
    total = x.sum() * 0
    for row in x:
        total = total + factorial(row.abs().long())
    return total


def gathered(x: Tensor, found: list[Tensor]) -> list[Tensor]:
    found.append(x)
    if x < 1:
        return found
    return gathered(x / 2, found)


def gathered_twice(x: Tensor, found: list[Tensor]) -> list[Tensor]:
    if x > 1:
        found.append(x)
        gathered_twice(x / 2, found)
        gathered_twice(x / 3, found)
    return found


def the_same_list(x: Tensor) -> Any:
    """What a call gives back is the very list it was given."""
    first: list[Tensor] = []
    second: list[Tensor] = []
    one, other = gathered(x, first), gathered_twice(x, second)
    one.append(x)
    other.append(-x)
    return first, second, one is first, other is second


def counted_up(x: Tensor, state: dict[str, Any]) -> dict[str, Any]:
    state["n"] = state["n"] + 1
    if x > 1:
        counted_up(x / 2, state)
    return state


def the_same_dict(x: Tensor) -> Any:
    state = {"n": x * 0}
    again = counted_up(x, state)
    again["n"] = again["n"] * 2
    return state


def local_functions(n: Tensor) -> Any:
    calls = 0

    def product(k: Tensor) -> Tensor:
        return k if k < 2 else product(k - 1) * k

    def tail(k: Tensor, total: Tensor) -> Tensor:
        if k < 2:
            return total
        return tail(k - 1, total * k)

    def fibonacci(k: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if k < 2:
            return k
        return fibonacci(k - 1) + fibonacci(k - 2)

    return product(n), tail(n, n * 0 + 1), fibonacci(n), calls


def fresh_list(x: Tensor) -> Any:
    def go(value: Tensor, found: list[Tensor]) -> list[Tensor]:
        if value <= 0:
            return found
        found.append(value)
        return go(value - 1, found)

    return go(x, [])


def logged_afterwards(x: Tensor, log: list[Tensor]) -> Tensor:
    """The result is only returned, but something is done before that."""
    if x <= 0:
        return x
    result = logged_afterwards(x - 1, log)
    log.append(x)
    return result


def printed_afterwards(x: Tensor) -> Tensor:
    if x <= 0:
        return x
    result = printed_afterwards(x - 1)
    print("after", x)
    return result


def logged_finally(x: Tensor, log: list[Tensor]) -> Tensor:
    if x <= 0:
        return x
    try:
        return logged_finally(x - 1, log)
    finally:
        log.append(x)


def deepest(x: Tensor, state: dict[str, Any]) -> Tensor:
    if x <= 0:
        return x
    state["depth"] += 1
    state["most"] = max(state["most"], state["depth"])
    result = deepest(x - 1, state)
    state["depth"] -= 1
    return result


def not_tail_calls(x: Tensor) -> Any:
    first: list[Tensor] = []
    second: list[Tensor] = []
    state = {"depth": 0, "most": 0}
    count = 0

    def doubled(value: Tensor) -> Tensor:
        nonlocal count
        if value <= 0:
            return value
        count += 1
        result = doubled(value - 1)
        count = count * 2
        return result

    results = logged_afterwards(x, first), logged_finally(x, second), printed_afterwards(x), deepest(x, state)
    return results, doubled(x), first, second, state, count


T = torch.tensor


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (halving, [P, N, P / 10]),
        (factorial, [T(1), T(5), T(0)]),
        (fibonacci, [T(7), T(1), T(3)]),
        (power, [(P, T(5)), (P, T(0)), (N, T(8))]),
        (ackermann, [(T(2), T(2)), (T(0), T(3)), (T(1), T(0))]),
        (is_even, [T(0), T(5), T(8)]),
        (with_a_closure, [P, N, P / 10]),
        (pairs, [T(3.5), T(0.5)]),
        (maybe, [T(3.0), T(-1.0), T(0.5)]),
        (printing, [T(1.0), T(7.0)]),
        (failing, [T(1.0), T(-1.0), T(-5.0)]),
        (in_a_loop, [P, N]),
        (the_same_list, [T(3.0), T(0.5)]),
        (the_same_dict, [T(3.0), T(0.5)]),
        (local_functions, [T(6), T(1)]),
        (fresh_list, [T(3.0), T(-1.0)]),
        (not_tail_calls, [T(3.0), T(-1.0)]),
    ],
)
def test_as_in_eager(function: Any, calls: list[Any]) -> None:
    agree(function, *calls)


def test_the_body_is_recorded_once() -> None:
    program = program_of(halving, P)
    assert count(program, recursion) == 1
    assert count(program, recurse) == 2
    program.verify()
    assert "recursive halving(" in str(program)


def test_of_a_module() -> None:
    class Tree(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left = nn.Linear(3, 3)
            self.right = nn.Linear(3, 3)
            self.calls = 0

        def forward(self, x: Tensor, depth: int = 0) -> Tensor:
            self.calls += 1
            if x.norm() < 0.2 or depth == 4:
                return x
            return self.forward(self.left(x) / 2, depth + 1) - self.forward(self.right(x) / 3, depth + 1)

    agree_fresh(Tree, P, N, P / 100)


def test_a_closure_of_a_factory() -> None:
    def make() -> Any:
        calls = 0

        def go(n: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            if n < 2:
                return n
            return go(n - 1) + go(n - 2)

        return go

    eager, static = make(), make()
    captured = sg.to_static(static, backend="eager")
    for n in (6, 1, 4):
        assert captured(T(n)) == eager(T(n))
        assert static.__closure__[0].cell_contents == eager.__closure__[0].cell_contents


def test_gradients() -> None:
    agree(power, *((P.clone().requires_grad_(), T(n)) for n in (5, 0, 3)))
    agree(squared, T(1.2, requires_grad=True), T(20.0, requires_grad=True))


def test_too_deep() -> None:
    def endless(x: Tensor) -> Tensor:
        if x < 0:
            return x
        return endless(x + 1) + 1

    static = sg.to_static(endless, backend="eager")
    assert static(T(-1.0)) == -1
    with pytest.raises(RecursionError):
        static(T(1.0))
    assert static(T(-2.0)) == -2


def never_ends(x: Tensor) -> Tensor:
    return never_ends(x / 2) + 1 if x > 0 else never_ends(x * 2)


def changes_rank(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x
    return changes_rank(x[None] * -1) + 1


def changes_its_argument(x: Tensor, out: list[Tensor]) -> int:
    if x > 4:
        return len(out)
    out.append(x)
    return changes_its_argument(x * 2, [*out, x]) + 1


@pytest.mark.parametrize(
    ("function", "args"),
    [(never_ends, (T(1.0),)), (changes_rank, (P,)), (changes_its_argument, (T(1.0), []))],
)
def test_refused(function: Any, args: Any) -> None:
    error = refusal(function, *args)
    assert error.reason.code in {"SG207", "SG305"}
    assert error.location is not None


def test_an_export_says_that_it_is_recursion(tmp_path: Any) -> None:
    with pytest.raises(sg.CaptureError, match="recursion"):
        sg.save(halving, tmp_path / "x.pt2", args=(P,))
    sg.save(squared, tmp_path / "y.pt2", args=(T(2.0),))
    loaded = sg.load(tmp_path / "y.pt2")
    assert loaded(T(1.5)) == squared(T(1.5))
