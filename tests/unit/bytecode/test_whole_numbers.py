"""Whole numbers among the arguments that differ from call to call: inputs where a program only computes with them.

What is given, its type and what is printed are eager's, whatever the number is and whatever is done with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.bytecode.segmented import captured

X = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


# ---- what is computed, printed, compared
def arithmetic(x: Any, n: Any) -> Any:
    y = x * n + n
    print(y.sum().item())
    return y - n


def printed(x: Any, n: Any) -> Any:
    y = x * 2
    print("step", n)
    return y + 1


def compared(x: Any, n: Any) -> Any:
    y = x * n
    print(y.sum().item())
    if n > 0:
        y = y + 1
    return y


def in_a_chain(x: Any, n: Any) -> Any:
    y = x * 2
    print("a")
    return y * 3 if 0 < n <= 50 else y


def equal(x: Any, n: Any) -> Any:
    print("a")
    return n == 100, n != 200, n == 100.0, n == "a", n is None, x


def operations(x: Any, n: Any) -> Any:
    print(x.sum().item())
    return x + n, n % 7, n // 3, n / 4, n**2, -n, abs(n), divmod(n, 5), n & 3, n | 8, n ^ 5, ~n, n << 2, n >> 1


def of_the_runs_value(x: Any, n: Any) -> Any:
    total = x.sum().item()
    print(total)
    return total * n, total + n, n - int(total)


def given_back(x: Any, n: Any) -> Any:
    print("a")
    return x + n, n, n + 1, [n], {"n": n}


def made_of_it(x: Any, n: Any) -> Any:
    print("a")
    return torch.full((3,), n), torch.tensor(n), torch.tensor([n, 1]), x.new_full((2,), n), torch.tensor(float(n))


def in_torch(x: Any, n: Any) -> Any:
    print("a")
    whole = x.to(torch.int64)
    return x.clone().fill_(n), x.clamp(max=n), torch.where(x > n, x, n), whole * n, whole // (n if n else 1)


def every_third(x: Any, n: Any) -> Any:
    y = x * n
    if n % 3 == 0:
        print("every third", n, y.sum().item())
    return y


def rate(x: Any, n: Any) -> Any:
    rate = 0.1 / n if n else 1.0
    print("a")
    return x * rate, rate


def as_a_condition(x: Any, n: Any) -> Any:
    print("a")
    return x * n if n else x - 1


def smallest(x: Any, n: Any) -> Any:
    print("a")
    return max(n, 3), min(n, x.shape[0]), sum([n, 1, 2]), sorted([n, 2, 0]), x * max(n, 1)


# ---- sizes, positions, bounds
def index(x: Any, n: Any) -> Any:
    y = x * 2
    print(y.sum().item())
    return y[n % 3], y[n % 3 :]


def size(x: Any, n: Any) -> Any:
    print("a")
    return x.repeat(abs(n) % 4 + 1), torch.zeros(abs(n) % 5), torch.arange(abs(n) % 4 + 1)


def bound_of_a_loop(x: Any, n: Any) -> Any:
    print("a")
    for number in range(abs(n) % 5):
        x = x + number
    return x


# ---- what needs it as it is
def text(x: Any, n: Any) -> Any:
    y = x * 2
    print(f"{n} {n:04d} {n!r}", y.sum().item())
    return y + 1, f"{n}"


def axis(x: Any, n: Any) -> Any:
    y = torch.stack([x, x])
    print("a")
    return y.sum(n % 2), y.sum(dim=n % 2)


def types(x: Any, n: Any) -> Any:
    print("a")
    return x * n, type(n), isinstance(n, int), isinstance(n, bool), n.bit_length(), n.__class__.__name__


def powers(x: Any, n: Any) -> Any:
    print("a")
    return x * 2 ** (n % 5), n**3, float(n), int(n), bool(n), str(n), repr(n), round(n, 1), hash(n)


def keys(x: Any, n: Any) -> Any:
    print("a")
    table = {n: x, 1: x + 1}
    return table, {n, 1, 2}, table[n], n in table, n in (1, 2, 3), [1, 2, 3].count(n)


def functions(x: Any, n: Any) -> Any:
    def inner(k: Any) -> Any:
        return x * k + n

    print("a")
    return inner(n), inner(2), sorted([3, 1, 2], key=lambda k: k * n), [k * n for k in range(3)]


def matched(x: Any, n: Any) -> Any:
    print("a")
    match n:
        case 1:
            return x + 1
        case 2 | 3:
            return x + 2
        case int():
            return x * n
        case _:
            return x


PROGRAMS: dict[Callable[..., Any], int] = {
    arithmetic: 4,
    printed: 3,
    compared: 3,
    in_a_chain: 3,
    equal: 2,
    operations: 4,
    of_the_runs_value: 4,
    given_back: 4,
    made_of_it: 4,
    in_torch: 4,
    every_third: 2,
    rate: 4,
    as_a_condition: 4,
    smallest: 4,
    index: 4,
    size: 4,
    bound_of_a_loop: 4,
    # what needs the number as it is becomes Python's, one place after the other
    text: 4,
    axis: 4,
    types: 27,
    powers: 34,
    keys: 4,
    functions: 7,
    matched: 6,
}
"""How many programs thirty numbers make: two of each place where one begins, unless the number is needed as it is."""
NUMBERS = [*range(1, 31)]
ODD = [3, -2, 0, 1, 2**70, 7, True, 2.5, -(2**65), 12, 2**40, -1, False, 5, 2**63, -(2**63), 2**31, 4, -0.0, 6]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_programs_of_numbers_that_differ(function: Callable[..., Any]) -> None:
    static, made = captured(lambda: function, [(X, number) for number in NUMBERS])
    assert made[-1] == PROGRAMS[function], made
    assert static.plan.gave_up is None


@pytest.mark.slow
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_numbers_of_all_kinds(function: Callable[..., Any]) -> None:
    captured(lambda: function, [(X, number) for number in [*ODD, *reversed(ODD)]])


def test_a_full_graph_takes_variables_around_functions_for_settings() -> None:
    scale = 1

    def rescale(value: int) -> None:
        nonlocal scale
        scale = value

    def f(x: Any, n: Any) -> Any:
        return x * n + scale

    static = sg.to_static(f, backend="eager")
    for number in (1, 2, 3, 4):
        assert_same(f(X, number), static(X, number))
    assert len(static.programs) == 3  # for 1, for 2, for any
    for value in (2, 3):
        rescale(value)
        assert_same(f(X, 4), static(X, 4))
    assert len(static.programs) == 5
    assert all(len(program.inputs) == 2 for program in static.programs[:2])
