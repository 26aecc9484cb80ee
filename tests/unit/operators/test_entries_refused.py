"""What no program can say of entries that are there on some paths only."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.partly_filled import CALLS, UP, half, set_again_in_front
from tests.unit.trace.agreement import agree, refusal


def two(x: Tensor) -> dict[str, int]:
    d = {"b": 2}
    if x.sum() > 1:
        d["a"] = 1
    return d


def some(x: Tensor) -> set[int]:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s


def deleted_while_run_over(x: Tensor) -> Any:
    d = {"a": 1, "b": 2}
    for key in d:
        if x.sum() > 1:
            del d[key]
    return d


def copied_with_another_name(x: Tensor) -> Any:
    d, n = [0], x.abs().max()
    e = d
    while n > 1:
        n = n / 2
        d = list(d)
    d[0] = 1
    return d, e


DISPLAYED = [
    lambda x: [*two(x).values()],
    lambda x: (*two(x).items(), 1),
    lambda x: ([*half(x)], 1),
]
UNSEEN = [
    lambda x: {("q", 1)} | two(x).items(),
    lambda x: two(x).keys() == {"b"},
    lambda x: some(x) in ({1}, {2}),
    lambda x: [{"b": 2}].count(two(x)),
    lambda x: frozenset(some(x)) == frozenset({1}),
    lambda x: hash(frozenset(some(x))),
    lambda x: frozenset(some(x)) in {frozenset({1})},
    lambda x: {frozenset({1}): 1}.get(frozenset(some(x)), 0),
    lambda x: (frozenset({1}) | some(x)) in {frozenset({1}), 5},
    lambda x: len({frozenset({2}) | some(x), frozenset({1})}),
    lambda x: {frozenset({1}): 5}.get(frozenset({1, 2}) & some(x)),
    lambda x: {(1, frozenset({int(x[0])}))} == {(1, frozenset({3}))},
]


def test_a_copy_is_told_from_what_another_name_leads_to() -> None:
    agree(copied_with_another_name, *CALLS)


@pytest.mark.parametrize("function", DISPLAYED)
def test_entries_in_a_display(function: Any) -> None:
    agree(function, *CALLS)


def test_entries_as_arguments_are_refused() -> None:
    assert refusal(lambda x: max(*two(x).values(), 0), UP).reason.code == "SG210"


@pytest.mark.parametrize("function", UNSEEN)
def test_what_nobody_would_see_is_refused(function: Any) -> None:
    assert refusal(function, UP).reason.code == "SG211"


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (deleted_while_run_over, "SG211"),
        (lambda x: range(int(x[0])), "SG306"),
    ],
)
def test_refused_for_another_reason(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


def run_over_in_no_order(x: Tensor) -> Any:
    return [value for value in set_again_in_front(x).values()]  # noqa: C416 (as people write it)


def overlapping_union(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s | {2}


def compared(x: Tensor) -> Any:
    return half(x) == {"a": x}


def subset(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s.issubset({1})


def ordered_sets(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s <= {1}


def counted_otherwise(x: Tensor) -> Any:
    n = 0
    for i, _ in enumerate(half(x)):
        n += i
    return n


def printed(x: Tensor) -> Any:
    print(half(x))


def named(x: Tensor) -> Any:
    return f"{half(x)}"


def in_a_display(x: Tensor) -> Any:
    return {"b": 1, **half(x)}


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (run_over_in_no_order, "SG211"),
        (overlapping_union, "SG211"),
        (counted_otherwise, "SG206"),
        (printed, "SG211"),
        (named, "SG211"),
        (in_a_display, "SG211"),
        (lambda x: iter(half(x)), "SG211"),
        (lambda x: collections.OrderedDict(half(x)), "SG211"),
    ],
)
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


@pytest.mark.parametrize(
    "function",
    [
        *(compared, subset, ordered_sets),
        lambda x: [two(x)] == [{"b": 2}],
        lambda x: (some(x) | {7}) <= {1, 7},
        lambda x: (1, some(x)) != (1, {1}),
        lambda x: 1 if some(x) == {1} else 0,
    ],
)
def test_compared_key_by_key(function: Any) -> None:
    agree(function, UP, -UP)
