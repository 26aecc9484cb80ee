"""Deques of a maximal length of which only the run knows what they hold."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree, agree_fresh

CALLS = [torch.tensor(each) for each in ([1.0, 0.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 0.0], [4.0, 3.0, 2.0])]


def rows(x: Tensor) -> list[Tensor]:
    found, n = [], 0
    while n < x.sum():
        found.append(x[0] * n)
        n += 1
    return found


def extended(x: Tensor) -> Any:
    held, added = deque([x[0], x[1], x[2]], maxlen=3), deque([x[0], x[1]], 4)
    held.extend(rows(x))
    added += rows(x)
    return held, added


def extended_by_known(x: Tensor) -> Any:
    held = deque(rows(x), maxlen=3)
    held.extend([x[0], x[1]])
    held.extend(v * 2 for v in rows(x))
    return held


def extended_at_the_left(x: Tensor) -> Any:
    held, free = deque([x[0], x[1], x[2]], maxlen=3), deque(rows(x))
    held.extendleft(rows(x))
    free.extendleft(rows(x * 2))
    return held, free


def added(x: Tensor) -> Any:
    held = deque([x[0], x[1], x[2]], maxlen=3)
    return held + deque(rows(x)), deque(rows(x)) + held, deque(rows(x), 2) + held


def repeated(x: Tensor) -> Any:
    held, kept = deque(rows(x), 2), deque(rows(x), 5)
    kept *= 2
    return held * 3, held * 0, kept, held * int(x.sum())


def of_no_room(x: Tensor) -> Any:
    held, other = deque(rows(x), maxlen=0), deque(maxlen=0)
    other += rows(x)
    return held, other


def appended_in_a_loop(x: Tensor) -> Any:
    last, first, n = deque([x], maxlen=3), deque(maxlen=2), 0
    while n < x.sum():
        last.append(x * n)
        if n % 2 == 0:
            first.appendleft(n)
        n += 1
    return last, sum(last), len(last), last[-1], first, len(first)


def appended_on_paths(x: Tensor) -> Any:
    held = deque([x], maxlen=3)
    for bound in (2, 3, 5):
        if x.sum() > bound:
            held.append(x + bound)
    if x.sum() > 8:
        held.appendleft(x - 1)
    oldest = held[0] * 1
    copied = held.copy()
    copied.append(oldest * 3)
    return held, copied, held.maxlen, copied.maxlen, oldest


def inserted(x: Tensor) -> Any:
    held = deque([x, x * 2], maxlen=3)
    if x.sum() > 2:
        held.append(x * 3)
    try:
        held.insert(1, x * 9)
    except IndexError as error:
        return held, str(error)
    return held, None


def taken(x: Tensor) -> Any:
    held, total = deque(maxlen=3), x.sum() * 0
    for i in range(int(x.sum())):
        held.append(i)
        if len(held) == 3:
            total = total + held[0] + held.popleft()
    held.reverse()
    return total, held


def of_two_lengths(x: Tensor) -> Any:
    held = deque([x], 2) if x.sum() > 2 else deque([x, x, x], 3)
    held.append(x * 2)
    return held, len(held)


def extended_by_itself(x: Tensor) -> Any:
    held, turned = deque(rows(x), 3), deque(rows(x), 3)
    held.extend(held)
    turned.extendleft(turned)
    return held, turned


FUNCTIONS = [
    *(extended, extended_by_known, extended_at_the_left, added, repeated, of_no_room),
    *(appended_in_a_loop, appended_on_paths, inserted, taken, of_two_lengths, extended_by_itself),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_too_much_leaves_at_the_other_end(function: Any) -> None:
    agree(function, *CALLS)


class History(nn.Module):
    """Keeps the last results, as multistep solvers do."""

    def __init__(self) -> None:
        super().__init__()
        self.last: deque[Tensor] = deque(maxlen=2)

    def forward(self, x: Tensor) -> Tensor:
        for bound in (0, 4):
            if x.sum() > bound:
                self.last.append(x * bound + x)
        return torch.stack(list(self.last)).sum(0) if self.last else x


def test_one_that_outlives_the_call() -> None:
    agree_fresh(History, *CALLS, -CALLS[1], programs=3)


def last_three(x: Tensor) -> Tensor:
    last, n = deque([x], maxlen=3), 0
    while n < x.sum():
        last.append(x * n)
        n += 1
    return torch.stack(list(last))


def test_in_a_file(tmp_path: Path) -> None:
    sg.save(sg.to_static(last_three), tmp_path / "f.pt2", args=(CALLS[1],))
    loaded = sg.load(tmp_path / "f.pt2")
    assert all(torch.equal(loaded(x), last_three(x)) for x in CALLS)
