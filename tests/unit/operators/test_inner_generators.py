"""Generators that are defined inside the function: a loop over one is staged as over any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree, refusal


def listed(x: Tensor) -> Any:
    def halves(v: Tensor) -> Iterator[Tensor]:
        while v.sum() > 1:
            yield v
            v = v / 2

    return list(halves(x))


def over_names_that_change(x: Tensor) -> Any:
    """The generator sees what the function has in its variables when it runs, and its defaults as they were."""
    scale, seen = 2, 0

    def scaled(v: Tensor, k: int = scale, *, m: int = 3) -> Iterator[Tensor]:
        nonlocal seen
        for i in range(4):
            if v.sum() > i * scale:
                seen += 1
                yield v * k + m

    scale = 3
    total = x * 0
    for y in scaled(x):
        total = total + y
        if total.sum() > 50:
            break
    for y in scaled(x, m=1):
        total = total - y
    return total, seen


def one_in_another(x: Tensor) -> Any:
    def outer(v: Tensor) -> Iterator[Tensor]:
        def inner(w: Tensor) -> Iterator[Tensor]:
            if w.sum() > 2:
                yield w
            yield w * 2

        for y in inner(v):
            yield y + 1
        yield from inner(v - 1)

    return sum(outer(x), x * 0), sorted(name for name in locals() if not name.startswith("_"))


def of_each_iteration(x: Tensor) -> Any:
    results: list[Tensor] = []
    for factor in (1, 2):

        def larger(v: Tensor) -> Iterator[Tensor]:
            for row in v:
                if row > factor:  # noqa: B023  # run before the next one
                    yield row * factor  # noqa: B023

        results += list(larger(x))
    return len(results), sum(results, x.sum())


def decorated(x: Tensor) -> Any:
    def doubled(make: Callable[[Tensor], Iterator[Tensor]]) -> Callable[[Tensor], Iterator[Tensor]]:
        return lambda v: make(v * 2)

    @doubled
    def halves(v: Tensor) -> Iterator[Tensor]:
        while v.sum() > 1:
            yield v
            v = v / 2

    count = 0
    for index, _ in enumerate(halves(x)):
        count += index
    return count


def drawn_from(x: Tensor) -> Any:
    """Python's own generator, as `next` wants it."""

    def three(v: Tensor) -> Iterator[Tensor]:
        for i in range(3):
            yield v + i

    drawn = three(x)
    first = next(drawn)
    return first, list(drawn)


def with_a_yield_in_try(x: Tensor) -> Any:
    seen = []

    def guarded(v: Tensor) -> Iterator[Tensor]:
        try:
            yield v
        finally:
            seen.append(1)

    for y in guarded(x):
        x = x + y
    return x, seen


@pytest.mark.parametrize(
    "function",
    [
        *(listed, over_names_that_change, one_in_another, of_each_iteration, decorated, drawn_from),
        with_a_yield_in_try,
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, P, N, P / 10)


def test_the_rewritten_code_shows_both() -> None:
    code = sg.to_static(listed, backend="eager").code
    assert "def halves_1(v: Tensor, *, emit_1):" in code
    assert "@generator(halves_1, 'emit_1')\n    def halves(v: Tensor)" in code


def test_messages_name_the_generator() -> None:
    def function(x: Tensor) -> Any:
        def wrong(v: Tensor) -> Iterator[Tensor]:
            while v.sum() > 1:
                yield v.nothing

        return list(wrong(x))

    assert ", in wrong\n" in str(refusal(function, P))
    assert "wrong_1" not in str(refusal(function, P))
