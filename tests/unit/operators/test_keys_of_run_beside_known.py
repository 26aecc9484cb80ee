"""Dicts and sets that begin with known keys, or get such in an arm or first iteration, and are filled by the run."""

from __future__ import annotations

import collections
import math
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree, refusal

NUMBERS = [torch.tensor(n) for n in (5, 0, 1, 7)]
ROWS = [torch.tensor(ids) for ids in ([1, 2, 0, 1], [0, 0, 0, 3], [3, 1, 3, 1])]


# ---- tables that a loop fills
def fibonacci(n: Tensor) -> Any:
    memo = {0: 0, 1: 1}
    for i in range(2, int(n) + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
    return memo[int(n)], memo, len(memo), sum(memo.values()), max(memo)


def of_tensors(n: Tensor) -> Any:
    memo = {0: torch.ones(2), 1: torch.full((2,), 2.0)}
    for i in range(2, int(n) + 1):
        memo[i] = memo[i - 1] + memo[i - 2] * 0.5
    return memo[int(n)]


def of_two_kinds(n: Tensor) -> Any:
    memo = {0: 0, 1: 1.5}
    for i in range(2, int(n) + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
    return memo[int(n)]


def coins(n: Tensor) -> Any:
    fewest: dict[int, float] = {0: 0}
    for amount in range(1, int(n) + 1):
        best = math.inf
        for coin in (1, 3, 4):
            if amount - coin in fewest:
                best = min(best, fewest[amount - coin] + 1)
        fewest[amount] = best
    return fewest[int(n)]


def recursive(n: Tensor) -> Any:
    memo = {0: 1, 1: 1}

    def at(k: int) -> int:
        if k in memo:
            return memo[k]
        memo[k] = at(k - 1) + at(k - 2)
        return memo[k]

    return at(int(n))


def path(n: Tensor) -> Any:
    goal, current, steps = int(n), 0, 0
    cost: dict[int, float] = {0: 0.0}
    came_from: dict[int, int | None] = {0: None}
    while current != goal and steps < 9:
        following = (current * 3 + 1) % 7
        if cost[current] + 1.0 < cost.get(following, math.inf):
            cost[following] = cost[current] + 1.0
            came_from[following] = current
        current = following
        steps += 1
    back: int | None = current
    found = []
    while back is not None:
        found.append(back)
        back = came_from[back]
    return found, cost, came_from


def of_texts(n: Tensor) -> Any:
    kinds = {0: "start"}
    for i in range(1, int(n)):
        kinds[i] = "odd" if i % 2 else "even"
    return kinds, kinds[int(n) // 2]


def of_pairs(n: Tensor) -> Any:
    grid = {(0, 0): 1}
    for i in range(int(n)):
        grid[i + 1, 0] = grid[i, 0] * 2
    return grid[int(n), 0], grid


def deleted(n: Tensor) -> Any:
    memo = {0: 1, 1: 1}
    for i in range(2, int(n) + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
        del memo[i - 2]
    return memo


def missing(n: Tensor) -> Any:
    memo = {0: 1, 1: 1}
    for i in range(2, int(n)):
        memo[i] = i
    return memo[int(n)]


def comprehended(n: Tensor) -> Any:
    squares = {i: i * i for i in range(int(n))}
    squares[0] = 7
    return squares, list(squares.items()), sorted(squares, key=squares.get)  # type: ignore[arg-type]


# ---- keys of paths
def after_an_arm(n: Tensor) -> Any:
    held = {0: 1}
    if n > 2:
        held[1] = 5
    read = held.get(int(n) - 2, 7), int(n) in held
    held[int(n)] = 9
    return read, held, len(held), held.setdefault(int(n) + 1, 3)


def in_a_later_arm(n: Tensor) -> Any:
    held, seen = {0: 1}, {0}
    if n > 0:
        held[1] = 5
        seen.add(1)
    if n > 4:
        held[int(n)] = 6
        seen.add(int(n))
    return held, seen


def in_a_later_loop(n: Tensor) -> Any:
    held = {0: 1}
    if n > 2:
        held[1] = 5
    for i in range(int(n)):
        held[i] = i + 10
    return held


# ---- other kinds of dict
def defaults(n: Tensor) -> Any:
    whole: Any = collections.defaultdict(int)
    real: Any = collections.defaultdict(float)
    rows: Any = collections.defaultdict(lambda: torch.zeros(2))
    real[0] = 1.0
    for i in range(int(n)):
        whole[i % 3] += i
        real[i % 3] += i * 0.5
        rows[i % 3] = rows[i % 3] + i
    return dict(whole), whole, real, dict(rows)


def counted(n: Tensor) -> Any:
    empty: Any = collections.Counter()
    begun: Any = collections.Counter({0: 1})
    for i in range(int(n)):
        empty[i % 3] += 1
        begun[i % 3] += 1
    return empty, begun, empty[9], empty.most_common(), empty.most_common(1), sum(begun.values()), begun.total()


def of_iterables(n: Tensor) -> Any:
    parity = collections.Counter(i % 2 for i in range(int(n)))
    letters: Any = collections.Counter("abracadabra")
    letters["a"] += int(n)
    return parity, collections.Counter(range(int(n))), letters


def ordered(n: Tensor) -> Any:
    memo: Any = collections.OrderedDict({0: 0, 1: 1})
    for i in range(2, int(n) + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
    memo.move_to_end(int(n))
    return memo, list(memo), memo.popitem(), memo.popitem(last=False), memo


def least_recently_used(n: Tensor) -> Any:
    cache: Any = collections.OrderedDict()
    hits = 0
    for i in range(int(n)):
        key = (i * i) % 5
        if key in cache:
            cache.move_to_end(key)
            hits += 1
        else:
            if len(cache) >= 2:
                cache.popitem(last=False)
            cache[key] = i
    return cache, hits


def taken_too_often(n: Tensor) -> Any:
    held = {}
    for i in range(int(n)):
        held[i] = i
    held.popitem()
    return held.popitem(), held


def taken_from_an_empty_order(n: Tensor) -> Any:
    held: Any = collections.OrderedDict()
    for i in range(int(n)):
        held[i] = i
    return held.popitem(False)


# ---- lists that hold None
def beside_none(n: Tensor) -> Any:
    held: list[int | None] = [None]
    rows: list[Tensor | None] = [None, None]
    for i in range(int(n)):
        held.append(i)
        rows.append(torch.ones(2) * i)
    total = torch.zeros(2)
    for row in rows:
        if row is not None:
            total = total + row
    middle = held[int(n) // 2]
    return held, None in held, 3 in held, total, -1 if middle is None else middle + 1


BY_A_NUMBER = (
    *(fibonacci, of_tensors, of_two_kinds, coins, recursive, path, of_texts, of_pairs, deleted, missing, comprehended),
    *(after_an_arm, in_a_later_arm, in_a_later_loop, defaults, counted, of_iterables, ordered, least_recently_used),
    *(taken_too_often, taken_from_an_empty_order, beside_none),
)


@pytest.mark.parametrize("function", BY_A_NUMBER)
def test_as_in_eager(function: Any) -> None:
    agree(function, *NUMBERS)


@pytest.mark.parametrize("function", [fibonacci, path, defaults, least_recently_used, missing])
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for n in NUMBERS:
        try:
            expected = function(n)
        except KeyError as error:
            with pytest.raises(KeyError, match=str(error)):
                traced(n)
        else:
            assert repr(traced(n)) == repr(expected)


def of_a_row(row: Tensor) -> Any:
    numbers = collections.Counter(row.tolist())
    more: Any = collections.Counter({1: 5})
    more.update(row.tolist())
    more.update({2: 7})
    less: Any = collections.Counter(row.tolist())
    less.subtract([1, 2])
    return numbers, numbers.most_common(1), more, less, numbers + collections.Counter([1, 1]), numbers[1]


def exchanged(row: Tensor) -> Any:
    places: dict[int, list[int]] = {}
    values: Any = collections.defaultdict(list)
    for k, i in enumerate(row.tolist()):
        places[i] = places.get(i, []) + [k]  # noqa: RUF005
        values[i] = values[i] + [row[k] * 2.0]
    return places, {key: torch.stack(held).sum() for key, held in values.items()}, [len(v) for v in places.values()]


def best(row: Tensor) -> Any:
    least = {0: 0.0}
    for k, i in enumerate(row.tolist()):
        if k * 1.5 - 1 < least.get(i, math.inf):
            least[i] = k * 1.5 - 1
    return least


@pytest.mark.parametrize("function", [of_a_row, exchanged, best])
def test_rows_as_in_eager(function: Any) -> None:
    agree(function, *ROWS)


class Memory(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memo = {0: 1.0, 1: 2.0}

    def forward(self, n: Tensor) -> Any:
        for i in range(2, int(n)):
            self.memo[i] = self.memo[i - 1] + 1
        return len(self.memo)


def test_what_the_caller_holds() -> None:
    for n in NUMBERS:
        eager, captured = Memory(), Memory()
        assert sg.to_static(captured, backend="eager")(n) == eager(n)
        assert captured.memo == eager.memo


def set_by_default(row: Tensor) -> Any:
    places: dict[int, set[int]] = {}
    for i in row.tolist():
        places.setdefault(i, set()).add(1)
    return places


def dicts_by_numbers(row: Tensor) -> Any:
    table: Any = collections.defaultdict(dict)
    for k, i in enumerate(row.tolist()):
        table[i][k] = 1
    return table


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (set_by_default, r"pairs\.add\(\(key, v\)\)"),
        (dicts_by_numbers, r"table\[key, other\] = v"),
    ],
)
def test_what_to_write_for_a_container_that_is_changed(function: Any, says: str) -> None:
    error = refusal(function, ROWS[0])
    assert error.location is not None
    assert error.location.file == __file__
    with pytest.raises(sg.CaptureError, match=says):
        raise error
    assert "Column" not in str(error)


def popped_with_a_keyword(n: Tensor) -> Any:
    held = {int(n): 1}
    return held.popitem(last=False)  # type: ignore[call-arg]  # which a dict does not take


def popped_with_an_argument(n: Tensor) -> Any:
    held = {int(n): 1}
    return held.popitem(False)  # type: ignore[call-arg]  # the same


@pytest.mark.parametrize("function", [popped_with_a_keyword, popped_with_an_argument])
def test_a_dict_takes_nothing_for_popitem(function: Any) -> None:
    n = torch.tensor(3)
    with pytest.raises(TypeError) as expected:
        function(n)
    with pytest.raises(TypeError) as found:
        sg.to_static(function, backend="eager")(n)
    assert str(found.value) == str(expected.value)
