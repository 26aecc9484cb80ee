"""Sets of numbers that only the run knows: operators, methods and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.grown import agree, grown


def members(x: Tensor) -> set[int]:
    """A set of which only the run knows the elements."""
    return {int(value) for value in grown(x)}


def united(x: Tensor) -> Any:
    known, found = {1, 2}, members(x)
    return sorted(known | found), sorted(found.union(known, {7})), len(known | found), known, sorted(found)


def in_both(x: Tensor) -> Any:
    known, found = {1, 2}, members(x)
    return sorted(known & found), sorted(found.intersection(known, {2})), sorted(known.intersection(found))


def in_one(x: Tensor) -> Any:
    known, found = {1, 2}, members(x)
    return sorted(found - known), sorted(known.difference(found, {1})), sorted(known ^ found)


def compared(x: Tensor) -> Any:
    known, found = {1, 2}, members(x)
    return known == found, found != {2}, known <= found, found >= {2}, known < found, known.isdisjoint(found)


def by_methods(x: Tensor) -> Any:
    known, found = {1, 2}, members(x)
    either = known.symmetric_difference(found)
    return known.issubset(found), found.issuperset({2}), found.isdisjoint({5, 6}), sorted(either)


def grown_in_a_loop(x: Tensor) -> Any:
    seen: set[int] = set()
    for value in x.tolist():
        if value > 0:
            seen |= {int(value)}
    return len(seen), 2 in seen, sorted(seen)


def changed_in_place(x: Tensor) -> Any:
    found, others = members(x), {int(value) for value in x.abs().tolist()}
    same = found
    found -= {2}
    others &= members(x)
    others ^= {1, 9}
    return sorted(found), same is found, sorted(others)


def changed_by_methods(x: Tensor) -> Any:
    found, others = members(x), members(x * 2)
    found.update(others, {8})
    others.difference_update({2})
    others.intersection_update(found)
    return sorted(found), sorted(others), others.symmetric_difference_update(found), sorted(others)


@pytest.mark.parametrize(
    "function",
    [united, in_both, in_one, compared, by_methods, grown_in_a_loop, changed_in_place, changed_by_methods],
)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function)
