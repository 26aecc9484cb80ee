"""Numbers that a function keeps from call to call, in a variable around it or in an object: they are inputs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.cases.compare import assert_same
from tests.unit.bytecode.segmented import X, captured, held, observed, to_partial

CALLS = [(X * (1 + number * 7 % 5),) for number in range(12)]
Function = Callable[[Any], Any]


# ---- variables around the function
def counter() -> Function:
    n = 0

    def f(x: Any) -> Any:
        nonlocal n
        n += 1
        y = x * n
        print(y.sum().item())
        return y + n

    return f


def total() -> Function:
    n = 0.0

    def f(x: Any) -> Any:
        nonlocal n
        n += x.sum().item()
        y = x * n
        print(n)
        return y + n, n

    return f


def best() -> Function:
    found = None

    def f(x: Any) -> Any:
        nonlocal found
        value = x.sum().item()
        if found is None or value > found:
            found = value
            print("best", found)
        return x * found

    return f


def two() -> Function:
    n, m = 0, 1

    def f(x: Any) -> Any:
        nonlocal n, m
        n += 1
        y = x * n
        print("a")
        m *= 2
        y = y + m
        print("b", n)
        return y - n, n, m

    return f


def called() -> Function:
    n = 0

    def bump() -> int:
        nonlocal n
        n += 1
        return n

    def f(x: Any) -> Any:
        y = x * bump()
        print(y.sum().item())
        return y + bump()

    return f


def beyond_64_bits() -> Function:
    n = 1

    def f(x: Any) -> Any:
        nonlocal n
        n *= 1000
        print(n)
        y = x + n % 7
        print("z")
        return y, n, n // 3

    return f


def of_other_types() -> Function:
    n: Any = 0

    def f(x: Any) -> Any:
        nonlocal n
        y = x * n
        print("a", n)
        n = {0: 2.5, 2.5: True}.get(n, n + 1)
        print("b", n, type(n))
        return y, n, isinstance(n, int)

    return f


def switch() -> Function:
    on = False

    def f(x: Any) -> Any:
        nonlocal on
        on = not on
        print("a")
        y = x * 2 if on else x
        print("b", on)
        return y, on

    return f


def raising() -> Function:
    n = 0

    def f(x: Any) -> Any:
        nonlocal n
        n += 1
        print("a")
        n += 1
        if n % 4 == 0:
            raise ValueError(n)
        print("b")
        n += 1
        return x * n, n

    return f


def decided_by_a_tensor() -> Function:
    n = 0

    def f(x: Any) -> Any:
        nonlocal n
        print("a")
        if x.sum() > 20:
            n += 1
        else:
            n -= 2
        print("b", n)
        return x * n

    return f


# ---- objects
def attribute() -> Function:
    kept = SimpleNamespace(n=0.0, k=0)

    def f(x: Any) -> Any:
        kept.n += x.sum().item()
        y = x * kept.n
        print(kept.n)
        kept.k += 1
        return y, kept.n, kept.k

    return f


def attribute_that_is_compared() -> Function:
    kept = SimpleNamespace(n=0.0)

    def f(x: Any) -> Any:
        kept.n += x.sum().item()
        if kept.n > 50:
            kept.n -= 40
            print("wrap", kept.n)
        return x * kept.n, kept.n

    return f


def by_two_names() -> Function:
    kept = SimpleNamespace(n=0)
    same = kept

    def f(x: Any) -> Any:
        kept.n += x.sum().item()
        print(same.n)
        same.n += 1
        return x * kept.n, same.n

    return f


def of_a_class() -> Function:
    class Kept:
        n = 0.0
        k = 0

    def f(x: Any) -> Any:
        Kept.n += x.sum().item()
        Kept.k += 1
        y = x * Kept.n
        print(Kept.k)
        return y, Kept.n

    return f


PROGRAMS = {
    counter: 3,
    total: 3,
    best: 6,
    two: 5,
    called: 3,
    beyond_64_bits: 5,
    switch: 5,
    raising: 5,
    decided_by_a_tensor: 5,
    attribute: 4,
    attribute_that_is_compared: 1,
    by_two_names: 3,
    of_a_class: 5,
}
"""How many programs twelve calls make: two of each place where one begins, and some where the way on differs."""


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_a_number_that_is_kept_is_an_input(make: Callable[[], Function]) -> None:
    static, made = captured(make, CALLS)
    assert made[-1] == PROGRAMS[make], made
    assert made[-5] == made[-1], made
    assert static.plan.gave_up is None


def test_numbers_of_other_types() -> None:
    _, made = captured(of_other_types, CALLS * 3)
    assert made[-20:] == [20] * 20, made


def test_a_variable_that_another_function_writes() -> None:
    def make() -> Function:
        n = 1

        def f(x: Any) -> Any:
            print("a")
            y = x * n
            print("b", n)
            write(n * 3)
            return y + n

        def write(value: int) -> None:
            nonlocal n
            n = value

        return f

    _, made = captured(make, CALLS)
    assert made[-6:] == [6] * 6, made


# ---- what a segment depends on
def read_behind(value: Any) -> Function:
    def f(x: Any) -> Any:
        y = x * 2
        print("a")
        return y * value

    return f


def read_by_an_inner_function(value: Any) -> Function:
    def f(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return y * value

        y = inner(x)
        print("a")
        return inner(y)

    return f


def read_in_a_comprehension(value: Any) -> Function:
    def f(x: Any) -> Any:
        print("a")
        return sum(x * value for _ in range(2)), [value for _ in range(2)]

    return f


def read_by_a_function_it_calls(value: Any) -> Function:
    def other(y: Any) -> Any:
        return y * value

    def f(x: Any) -> Any:
        print("a")
        return other(x), list(map(other, [x, x]))

    return f


def shown(value: Any) -> Function:
    def f(x: Any) -> Any:
        print("a")
        return x * value, sorted(locals())

    return f


MADE = {
    read_behind: 3,
    read_by_an_inner_function: 6,
    read_in_a_comprehension: 3,
    read_by_a_function_it_calls: 3,
    shown: 4,
}
"""How many programs whole numbers make."""


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_a_variable_that_the_world_writes(make: Callable[[Any], Function]) -> None:
    function: Any = make(1)
    static = to_partial(function)
    place = dict(zip(function.__code__.co_freevars, function.__closure__))
    cell = place["value"] if "value" in place else place["other"].cell_contents.__closure__[0]
    made = []
    for value in (1, 2, 3, -4, 5, 6, 7, 8, 9, 10, 2.5, True, 2, 2**70, 0, 2.5, 1, -(2**65), 3, False, "a", 4):
        cell.cell_contents = value
        wanted, given = observed(function, (X,)), observed(static, (X,))
        assert given.error == wanted.error, value
        assert_same(wanted.value, given.value, f"of {value}")
        made.append(held(static).cache_info().misses)
    assert made[9] == made[5] == MADE[make], made


def test_a_variable_that_is_unset_in_some_calls() -> None:
    def make() -> Any:
        n: Any = 3

        def f(x: Any, v: Any) -> Any:
            nonlocal n
            if v == 4:
                del n
            print("on")
            try:
                r = n
            except NameError as error:
                r = str(error)
            n = v
            return r

        return f

    captured(make, [(X, v) for v in (1, 2, 3, 4, 5, 4, 4, 6, 2.5, 4, "a")])


def test_a_variable_that_is_unset_in_the_first_call_of_each_function() -> None:
    def make_inner() -> Any:
        n: Any = None
        del n

        def g(v: Any) -> Any:
            nonlocal n
            try:
                r = n
            except NameError as error:
                r = str(error)
            n = v
            return r

        return g

    def make() -> Any:
        kept: list[Any] = []

        def f(x: Any, v: Any) -> Any:
            if v % 3 == 0:
                kept[:] = [make_inner()]
            print("on")
            g = kept[0]
            a = g(v)
            print("still on")
            return a, g(v + 1)

        return f

    captured(make, [(X, v) for v in range(10)])


def test_a_function_that_is_found_by_two_ways() -> None:
    def make(n: int) -> Any:
        def g(x: Any) -> Any:
            y = x * n
            print("g")
            return y * n

        def set_g(function: Any) -> None:
            nonlocal g
            g = function

        def set_n(value: int) -> None:
            nonlocal n
            n = value

        def f(x: Any) -> Any:
            print("a")
            return x * n + g(x) * 10

        vars(f).update(set_g=set_g, set_n=set_n, g=g)
        return f

    f, other = make(1), make(1)
    static = to_partial(f)
    for number, (mine, theirs) in enumerate([(1, 1), (2, 2), (3, 3), (5, 5), (5, 7), (5, 9), (6, 9), (9, 9), (8, 9)]):
        f.set_n(mine)
        other.set_n(theirs)
        if number == 4:
            f.set_g(other.g)
        assert_same(observed(f, (X,)).value, observed(static, (X,)).value, f"call {number}")


def test_the_best_state_is_kept_as_a_deep_copy() -> None:
    def keep(best: dict[str, Any], model: torch.nn.Module, x: Any) -> Any:
        value = model(x).sum().item()
        if best.get("value") is None or value > best["value"]:
            best["value"] = value
            best["state"] = copy.deepcopy(model.state_dict())
        print(value)
        return value

    model = torch.nn.Linear(2, 2)
    made = []
    for function in (keep, to_partial(keep)):
        best: dict[str, Any] = {}
        values = []
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("error")  # one of the capture's own would be the user's
            for factor in (1, -1, 3):
                model.weight.fill_(0.5 * factor)
                values.append((function(best, model, torch.ones(1, 2)), best["state"]["weight"].clone()))
        assert best["state"]["weight"] is not model.weight
        made.append(values)
    assert_same(*made)
