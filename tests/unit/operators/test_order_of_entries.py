"""Dicts whose keys are in another order on each path, and what else shows besides values: names and kinds."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.partly_filled import CALLS, set_again_in_front
from tests.unit.trace.agreement import agree


def another_order(x: Tensor) -> Any:
    d = {}
    if x.sum() > 1:
        d["a"], d["b"], d["n"] = x, x + 1, 1
    else:
        d["b"], d["a"] = x, x + 2
    d["b"] = d["b"] * 2
    return d, "n" in d, len(d), d["a"], d.get("n")


def counts(x: Tensor) -> Any:
    found: dict[str, int] = {}
    for value in x:
        name = "up" if value > 1.6 else "down" if value < -1.6 else "flat"
        found[name] = found.get(name, 0) + 1
    return found, found.get("up", 0), len(found)


def counter(x: Tensor) -> Any:
    found: collections.Counter[str] = collections.Counter()
    for value in x:
        found["up" if value > 0 else "down"] += 1
    return dict(found), found["up"], found["never"]


def reordered_in_a_loop(x: Tensor) -> Any:
    d = {"a": x, "b": x}
    while x.abs().sum() < 60:
        if x[0] > 4:
            d["a"] = d.pop("a") + 1
        else:
            d["c"] = x
        x = x * 2
    del d["b"]
    return d, len(d)


def in_front_or_behind(x: Tensor) -> Any:
    last: dict[str, Tensor] = {}
    i = 0
    while x.abs().sum() < 60:
        last["x"] = x
        if x[0] > 4:
            last["big"] = x + 1
        x = x * 2
        i += 1
    return last, i


def taken_from_it(x: Tensor) -> Any:
    d = set_again_in_front(x)
    if x[0] > 0:
        del d["a"]
    return d.pop("z"), d.pop("c", None), d, "b" in d


REORDERED = [
    another_order,
    set_again_in_front,
    counts,
    counter,
    reordered_in_a_loop,
    in_front_or_behind,
    taken_from_it,
]


@pytest.mark.parametrize("function", REORDERED)
@pytest.mark.parametrize("first", range(3))
def test_agrees(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])


def one_set_twice(x: Tensor) -> Any:
    s = {1}
    o = {"s": s}
    if x.sum() > 1:
        s.add(2)
    return o, s


def filled_by_a_while_loop(x: Tensor) -> Any:
    found: dict[str, int] = collections.defaultdict(int)
    i = 0
    while i < 4 and x.abs().sum() < 40:
        found["up" if x[i] > 0 else "down"] += 1
        x = x * 1.5
        i += 1
    return dict(found), i


def taken_out_and_put_back(x: Tensor) -> Any:
    d = {"a": 1, "b": 2}
    if x[0] > 0:
        d["a"] = d.pop("a")
    if x[1] > 0:
        del d["b"]
    d["c"] = 3
    return d, d.setdefault("b", 7), d.setdefault("z", 8), len(d)


def equal_to_no_other(x: Tensor) -> Any:
    nan = float("nan")
    d = {}
    if x.sum() > 1:
        d[nan] = 1
    return nan in d, len(d), d.get(nan, 0)


def copied_in_a_loop(x: Tensor) -> Any:
    d, n = [0], x.abs().max()
    while n > 1:
        n = n / 2
        d = list(d)
    d[0] = 1
    return d, n


def set_before_it_raises(x: Tensor) -> Any:
    h: dict[str, Any] = {"z": x}
    try:
        h["a"] = x
        if x.sum() > 1:
            raise KeyError("big")
        h["b"] = [x]
        if x[0] > 0:
            raise KeyError("mixed")
    except KeyError:
        h["c"] = x
    return h, len(h), "b" in h


def ordered_dict(x: Tensor) -> Any:
    d = collections.OrderedDict(z=1)
    if x.sum() > 1:
        d["a"] = 5
    d["b"] = 2
    if x[0] > 0:
        del d["z"]
    return d, sum(d.values()), len(d.items()), [v for v in d.values()], d.pop("a", 0), d  # noqa: C416


@pytest.mark.parametrize(
    "function",
    [
        *(one_set_twice, filled_by_a_while_loop, taken_out_and_put_back, equal_to_no_other, copied_in_a_loop),
        *(ordered_dict, set_before_it_raises),
    ],
)
@pytest.mark.parametrize("first", range(3))
def test_agrees_in_more_than_value(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])
