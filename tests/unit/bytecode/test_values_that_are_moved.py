"""What a segment only moves is what it was: where ways meet again, and in a function that is being made."""
from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.sampling import crossed
from tests.unit.bytecode.segmented import Args, agrees, to_partial

ONE = torch.tensor(1.0)
CALLS: tuple[Args, ...] = ((ONE, 3, 4), (-ONE, 3, 4), (-ONE, 3, 3), (ONE, "a", "b"), (-ONE, "a", "b"))


def on_the_stack(s: Tensor, n: Any, m: Any) -> Any:
    print("on")
    return (1 if s > 0 else n), (m if s > 0 else n), (s > 0 and n) or m


def in_a_variable(s: Tensor, n: Any, m: Any) -> Any:
    k = 0
    print("on")
    if s > 0:
        k = n
    else:
        k = m
    return k


def returned(s: Tensor, n: Any, m: Any) -> Any:
    print("on")
    if s > 0:
        return n
    return m


def in_a_loop(s: Tensor, n: Any, m: Any) -> Any:
    k = m
    print("on")
    for e in torch.stack([s, s + 1]):
        if e > 0:
            k = n
            break
    return k, s


def from_a_handler(s: Tensor, n: Any, m: Any) -> Any:
    print("on")
    z = k = None
    try:
        if s > 0:
            raise KeyError
        z = n
    except KeyError:
        k = m
    return z, k


def iterators(s: Tensor, n: Any, m: Any) -> Any:
    first, second = iter([n]), iter([m])
    print("on")
    return list(first if s > 0 else second)


@pytest.mark.parametrize("function", [on_the_stack, in_a_variable, returned, in_a_loop, from_a_handler, iterators])
def test_what_an_arm_moves(function: Callable[..., Any]) -> None:
    agrees(lambda record: function, *CALLS)


# ---- an argument that a program computes with, and that an expression picks
class Kept:
    value: Any = None
    both: Any = None


def by_or(x: Tensor, n: Any) -> Any:
    print("on")
    return x * n, n or 6


def by_and(x: Tensor, n: Any) -> Any:
    print("on")
    return x * n, n and 6, n or None


def by_a_condition(x: Tensor, n: Any) -> Any:
    print("on")
    return x * n, n if n > 2 else 6, (n or 7) if x.sum() > 0 else (n or 8)


def looked_at(x: Tensor, n: Any) -> Any:
    print("on")
    y, m = x * n, n or None
    return y, m is None, type(m).__name__


def stored(x: Tensor, n: Any) -> Any:
    print("on")
    kept, d, y = Kept(), {}, x * n
    kept.value = n or 5
    d["a"] = n or 6
    kept.both = [n or 7, max(n or 0, 4), d.get("b", n)]
    return kept.value, d, kept.both, y


def stored_in_a_global(x: Tensor, n: Any) -> Any:
    global GLOBAL
    print("on")
    y = x * n
    GLOBAL = n or 6
    return y, GLOBAL


GLOBAL: Any = None


def by_an_inner_function(x: Tensor, n: Any) -> Any:
    print("on")
    y, m = x * n, 0

    def put() -> None:
        nonlocal m
        m = n

    if y.sum() > 9:
        put()
    return (lambda a: a or 3)(n), m, [n or k for k in (1, 2)], y


def kept_over_a_step(x: Tensor, n: Any) -> Any:
    print("on")
    y, m = x * n, n or 6
    print("still on")
    return m, m if y.sum() > 9 else None, y


NUMBERS: dict[str, tuple[Args, ...]] = {
    "int": tuple((torch.ones(3), n) for n in (2, 3, 4, 5, 0, 3, 2, -1)),
    "float": tuple((torch.ones(3), n) for n in (2.5, 3.5, 4.5, 0.0, 3.0)),
}


PICKING = [
    *(by_or, by_and, by_a_condition, looked_at, stored, stored_in_a_global, by_an_inner_function, kept_over_a_step),
]


@pytest.mark.parametrize(("function", "kind"), crossed(PICKING, NUMBERS))
def test_what_an_expression_picks(function: Callable[..., Any], kind: str) -> None:
    agrees(lambda record: function, *NUMBERS[kind])


def test_an_iterator_that_an_expression_picks() -> None:
    def function(x: Tensor, n: Any) -> Any:
        print("on")
        return n if x.sum() > 0 else None

    static = to_partial(function)
    for _ in range(4):
        given = iter([1, 2])
        assert static(torch.ones(3), given) is given
        assert static(-torch.ones(3), given) is None


@contextlib.contextmanager
def managed(name: str) -> Iterator[None]:
    print("begin", name)
    yield
    print("end", name)


def test_a_function_that_a_segment_begins_in_the_making_of_has_its_defaults_in_every_call() -> None:
    def function(s: Tensor, n: int, m: int) -> Any:
        rounds, seen = 0, []

        def note(x: Tensor, much: bool = True, *, more: int = m) -> Tensor:
            nonlocal rounds
            rounds += more if much else 0
            seen.append(x.item())
            return x + 0.125

        def noted(x: Tensor, z: float = 0.5) -> Any:
            return [note(e) * z for e in map(note, x)]

        with managed("here"):
            v = torch.stack([note(abs(s)), note(s)])
        return v, noted(v), rounds, seen

    agrees(lambda record: function, *CALLS[:3])


# ---- methods of containers, which are looked up before they are called
def adds_each(s: Tensor, given: Any, others: list[int]) -> Any:
    print(s.item())
    add, x = given.append, s + 1
    list(map(add, [1, x]))
    for each in others:
        add(each)
    return x * len(given), given


def asks_for_its_size(s: Tensor, given: Any, others: list[int]) -> Any:
    print(s.item())
    size, x = given.__len__, s + 1
    print("on")
    return x * size(), given


def hands_it_on(s: Tensor, given: Any, others: list[int]) -> Any:
    count = given.count
    print(s.item())

    def inner(x: Tensor) -> Tensor:
        return x * count(1)

    return inner(s), [count][0](2)


def keeps_the_last(s: Tensor, given: Any, others: list[int]) -> Any:
    print(s.item())
    kept = collections.deque(given, len(others) or None)
    return s * (kept.maxlen or 7), _pushed(kept, s)


def _pushed(kept: Any, s: Tensor) -> Any:
    print("on")
    kept.append(int(s))
    return [*kept], kept.maxlen


@pytest.mark.parametrize("function", [adds_each, asks_for_its_size, hands_it_on, keeps_the_last])
def test_methods_of_containers(function: Callable[..., Any]) -> None:
    lists = ([1], [2, 1], [], [5], [1, 1, 1], [1])
    calls = [(ONE + at, each, [4] * (at % 3)) for at, each in enumerate(lists)]
    agrees(lambda record: function, *calls, times=5, settled=4)


def test_how_long_a_deque_may_be_is_guarded() -> None:
    def function(s: Tensor, kept: collections.deque[int]) -> Any:
        print(s.item())
        return s * (kept.maxlen or 7), kept.append(4)

    agrees(lambda record: function, *((ONE, collections.deque([1, 2], size)) for size in (3, 2, None, 4, 3)))
