"""Dicts and sets by tuples of numbers which only the run knows, and lists of such tuples."""

from __future__ import annotations

import collections
import itertools
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, outcome, refusal, same_error

X = torch.arange(4.0) + 1
CALLS = [
    (X, torch.tensor([1, 2, 1, 2, 1])),
    (-X, torch.tensor([0, 0, 3, 0, 0])),
    (X, torch.tensor([3, 2, 1, 0, 3])),
    (X, torch.tensor([1, 1, 2, 1, 1])),
]


class Cell(NamedTuple):
    row: int
    column: int


def blocked(x: Tensor, index: Tensor) -> Any:
    seen: set[tuple[int, int]] = set()
    repeats = 0
    ids = index.tolist()
    for a, b in zip(ids, ids[1:]):  # noqa: RUF007  # as people write it
        if (a, b) in seen:
            repeats += 1
        seen.add((a, b))
    return x * repeats, len(seen), sorted(seen), sorted(seen, reverse=True), seen


def counted(x: Tensor, index: Tensor) -> Any:
    plain: dict[tuple[int, int], int] = {}
    counter: Any = collections.Counter()
    default: Any = collections.defaultdict(int)
    for k in range(4):
        pair = int(index[k]), int(index[k + 1])
        plain[pair] = plain.get(pair, 0) + 1
        counter[pair] += 1
        default[pair] += 2
    return plain, counter, dict(default), counter[9, 9], sum(plain.values()), len(default), plain[1, 2]


def of_known_keys(x: Tensor, index: Tensor) -> Any:
    table = {(1, 2): 10, (2, 1): 20, (0, 0): 30, (3, 2): 5}
    pair = int(index[0]), int(index[1])
    table[2, int(index[2])] = 7
    return x * table.get(pair, -1), pair in table, table


def missing(x: Tensor, index: Tensor) -> Any:
    return x * {(1, 2): 10, (0, 0): 30}[int(index[0]), int(index[1])]


def missing_and_caught(x: Tensor, index: Tensor) -> Any:
    held = {(int(index[0]), 1): 1.5}
    try:
        return held[int(index[1]), 1]
    except KeyError:
        return -1.0


def of_many_keys(x: Tensor, index: Tensor) -> Any:
    table = {(i, j): 10 * i + j for i in range(7) for j in range(7)}
    del table[0, 0]
    pair = int(index[0]), int(index[1])
    return x * table.get(pair, -1), pair in table, (*pair, 1) in table


def until_it_comes_again(x: Tensor, index: Tensor) -> Any:
    seen = set()
    a, b, steps = int(index[0]), int(index[1]), 0
    while (a, b) not in seen:
        seen.add((a, b))
        a, b = b, (a + b) % 5
        steps += 1
    return steps, a, b, len(seen)


def as_often_as_the_run_says(x: Tensor, index: Tensor) -> Any:
    seen: dict[Any, int] = {}
    found = 0
    for k in range(index.max() + 1):
        pair = int(index[k]), k % 2
        if pair in seen:
            found += seen[pair]
        else:
            seen[pair] = k
    return found, seen, [v * x for _, v in seen.items()], [a + b for a, b in seen], list(seen.keys()), list(seen)


def named(x: Tensor, index: Tensor) -> Any:
    seen = set()
    for k in range(4):
        seen.add(Cell(int(index[k]), k % 2))
    first = Cell(int(index[0]), 0)
    return len(seen), first in seen, (int(index[0]), 0) in seen, sorted(seen), {first: x}[first], {first: 1}


def with_texts(x: Tensor, index: Tensor) -> Any:
    held: dict[Any, int] = {("a", int(index[0])): 1}
    held["b", int(index[1])] = 2
    held["a", int(index[2])] = 3
    return held, ("a", int(index[1])) in held, held.get(("b", int(index[0]))), ("c", int(index[0])) in held


def comprehended(x: Tensor, index: Tensor) -> Any:
    ids = index.tolist()
    pairs = {(a, b) for a, b in itertools.pairwise(ids)}
    places = {(a, b): i for i, (a, b) in enumerate(itertools.pairwise(ids))}
    made = set(itertools.pairwise(ids))
    return len(pairs), places, len(made), {(ids[0], ids[1]), (ids[1], ids[0])}, {(ids[0], 1): 2}, dict(places)


def taken_out(x: Tensor, index: Tensor) -> Any:
    ids = index.tolist()
    places = {(a, b): i for i, (a, b) in enumerate(itertools.pairwise(ids))}
    del places[ids[0], ids[1]]
    popped = places.pop((ids[1], ids[2]), None)
    others = set(places)
    others.discard((ids[2], ids[3]))
    return places, popped, len(others), places.setdefault((9, ids[0]), 4), places


def in_arms(x: Tensor, index: Tensor) -> Any:
    held = {}
    if x.sum() > 0:
        held[int(index[0]), 1] = x[0]
    else:
        held[int(index[1]), 2] = x[1]
        held[5, 5] = x[2]
    return held, len(held)


def nested(x: Tensor, index: Tensor) -> Any:
    held = {}
    for k in range(4):
        held[(int(index[k]),), 1.5 * int(index[k + 1]), k > 1] = k
    return held


def one_key(x: Tensor, index: Tensor) -> Any:
    held = {(int(index[0]), 1): 1}
    held[float(index[1]), True] = 2
    held[bool(index[0] == 1), 1.0] = 3
    return held, (1, 1) in held, [type(part) for key in {(1, 2): 3} for part in key]


def in_lists(x: Tensor, index: Tensor) -> Any:
    pairs = []
    for k in range(index.max() + 1):
        pairs.append((int(index[k]), k))
    pair = int(index[0]), 0
    there = pair in pairs, (5, 5) in pairs, pairs.count(pair), pairs.index(pair)
    pairs.remove(pair)
    return there, pairs, sorted(pairs)


EVERY = (
    *(blocked, counted, of_known_keys, missing, missing_and_caught, of_many_keys, until_it_comes_again),
    *(as_often_as_the_run_says, named, with_texts, comprehended, taken_out, in_arms, nested, one_key, in_lists),
)


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", EVERY)
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for call in CALLS:
        expected, actual = (outcome(each, call) for each in (function, traced))
        assert same_error(expected["error"], actual["error"])
        assert_same(expected["value"], actual["value"])


class Memory(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memo: dict[Any, Tensor] = {}
        self.met: set[Any] = set()

    def forward(self, x: Tensor, index: Tensor) -> Any:
        pair = int(index[0]), int(index[1])
        if pair not in self.memo:
            self.memo[pair] = x.sum() * index[0]
        self.met.add(pair)
        return self.memo[pair], len(self.met)


def test_what_the_caller_holds() -> None:
    eager, captured = Memory(), Memory()
    static = sg.to_static(captured, backend="eager", full_graph=True)
    for call in CALLS:
        assert_same(eager(*call), static(*call))
        assert_same(eager.memo, captured.memo)
        assert captured.met == eager.met


def with_tensors(index: Tensor) -> Any:
    held = []
    while len(held) < index[0]:
        held.append((index[0], 1))
    return (index[0], 1) in held


def of_other_lengths(index: Tensor) -> Any:
    held = set()
    while len(held) < index[0]:
        held.add((int(index[0]), 1))
        held.add((int(index[0]),))
    return len(held)


@pytest.mark.parametrize("function", [with_tensors, of_other_lengths])
def test_refused(function: Any) -> None:
    assert refusal(function, torch.tensor([1, 2])).reason.code in ("SG203", "SG210", "SG211")
