"""Dicts, sets and deques that a loop over them changes: Python raises where that was seen, and only there."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

GIVEN = [[1, 1], [1, 2], [2, 2], [3, 1], [1, 0], [0, 2], [2, 5]]


def by_keys(x: Tensor) -> Any:
    d, t = {int(x[0]): 1}, 0
    for _ in d:
        d[int(x[1])] = 5
        t += 1
    return t


def by_items(x: Tensor) -> Any:
    d, t = {int(x[0]): 1, 7: 2}, 0
    for _, v in d.items():
        d[int(x[1])] = 5
        t += v
    return t


def known_dict(x: Tensor) -> Any:
    d, t = {1: 1}, 0
    for v in d.values():
        d[int(x[1])] = 5
        t += v
    return t


def last_element(x: Tensor) -> Any:
    d, t = {1: 1, 2: 2}, 0
    for v in d:
        if v == 2:
            d[int(x[1])] = 5
        t += 1
    return t


def left_before(x: Tensor) -> Any:
    d, t = {int(x[0]): 1}, 0
    for _ in d:
        d[int(x[1])] = 5
        t += 1
        if x[1] > 1:
            break
    return t, len(d)


def handled(x: Tensor) -> Any:
    d, t = {int(x[0]): 1}, 0
    try:
        for _ in d:
            d[int(x[1])] = 5
            t += 1
    except RuntimeError as error:
        return t, str(error)
    return t, len(d)


def made_by_reading(x: Tensor) -> Any:
    d, t = collections.defaultdict(int, {1: 1}), 0
    for _ in d:
        t += d[int(x[1])] + 1
    return t


def known_set(x: Tensor) -> Any:
    s, t = {1}, 0
    for _ in s:
        s.add(int(x[1]))
        t += 1
    return t


def set_in_a_branch(x: Tensor) -> Any:
    s, t = {1}, 0
    for _ in s:
        if x[1] > 1:
            s.add(2)
        t += 1
    return t


def ordered(x: Tensor) -> Any:
    d, t = collections.OrderedDict({1: 1, 3: 1}), 0
    for v in d:
        d[int(x[1])] = v
        t += 1
    return t


def deque_appended(x: Tensor) -> Any:
    q, t = collections.deque([1, 2]), 0
    for v in q:
        if x[1] > 1:
            q.append(3)
        t += v
    return t


def deque_turned(x: Tensor) -> Any:
    q, t = collections.deque([1, 2]), 0
    for v in q:
        if x[1] > 1:
            q.rotate(1)
        t += v
    return t


def deque_exchanged(x: Tensor) -> Any:
    q, t = collections.deque([1, 2]), 0
    for v in q:
        if x[1] > 1:
            q[1] = 5
        t += v
    return t


def deque_of_the_run(x: Tensor) -> Any:
    q, t = collections.deque[int](), 0
    for i in range(int(x[0])):
        q.append(i)
    for v in q:
        if x[1] > 1:
            q.append(3)
        t += v
    return t


def numbered(x: Tensor) -> Any:
    q, t = collections.deque([1, 2]), 0
    for i, v in enumerate(q):
        if x[1] > 1:
            q.append(3)
        t += i * v
    return t


def zipped_behind(x: Tensor) -> Any:
    d, t = {int(x[0]): 1}, 0
    for i, _ in zip(range(1), d):
        d[int(x[1])] = 5
        t += i
    return t, len(d)


def turned_round(x: Tensor) -> Any:
    d, t = {int(x[0]): 1}, 0
    for _ in reversed(d):
        d[int(x[1])] = 5
        t += 1
    return t


def mapped(x: Tensor) -> Any:
    d = {int(x[0]): 1}
    return list(map(lambda _: d.setdefault(int(x[1]), 5), d))  # noqa: C417 - a function that changes it


def stepwise(x: Tensor) -> Any:
    q = collections.deque([1, 2])
    it = iter(q)
    first = next(it)
    if x[1] > 1:
        q.append(3)
    return first + next(it, 77)


COUNTED = (by_keys, by_items, known_dict, last_element, left_before, handled, made_by_reading, known_set)
OTHERS = (set_in_a_branch, ordered, deque_appended, deque_turned, deque_exchanged, deque_of_the_run, numbered)
EXACT: dict[str, Callable[[Tensor], Any]] = {
    **{each.__name__: each for each in (*COUNTED, *OTHERS)},
    "zipped_behind": zipped_behind,
    "turned_round": turned_round,
    "mapped": mapped,
    "stepwise": stepwise,
    "list comprehension": lambda x: [d.setdefault(int(x[1]), 5) for d in [{int(x[0]): 1}] for _ in d],
    "any": lambda x: (lambda d: any(d.setdefault(int(x[1]), 5) > 7 for _ in d))({int(x[0]): 1}),
    "sum": lambda x: (lambda d: sum(d.setdefault(int(x[1]), v) for _, v in d.items()))({int(x[0]): 1}),
    "dict comprehension": lambda x: (lambda d: len({k: d.setdefault(int(x[1]), 5) for k in d}))({int(x[0]): 1}),
    "set comprehension": lambda x: (lambda s: len({s.add(int(x[1])) for _ in s}))({1}),
    "deque comprehension": lambda x: (lambda q: [q.append(3) if x[1] > 1 else 5 for _ in q])(collections.deque([1, 2])),
}


def popped(x: Tensor) -> Any:
    d, t = {1: 1, 2: 2}, 0
    for _ in d:
        d.pop(int(x[1]), None)
        t += 1
    return t


def dropped(x: Tensor) -> Any:
    s, t = {1, 2}, 0
    for _ in s:
        s.discard(int(x[1]))
        t += 1
    return t


def taken_from_the_left(x: Tensor) -> Any:
    q, t = collections.deque([1, 2]), 0
    for v in q:
        if x[1] > 1:
            q.popleft()
        t += v
    return t


def moved(x: Tensor) -> Any:
    d, t = collections.OrderedDict({"a": 1, "b": 2}), 0
    for _ in d:
        if x[1] > 1:
            d.move_to_end("a")
        t += 1
    return t


REFUSED: tuple[Callable[[Tensor], Any], ...] = (popped, dropped, taken_from_the_left, moved)


def _outcome(function: Callable[[Tensor], Any], values: list[int]) -> tuple[str, str]:
    try:
        return "value", repr(function(torch.tensor(values)))
    except RuntimeError as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", EXACT.values(), ids=EXACT)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any], full_graph: bool) -> None:
    for order in (GIVEN, GIVEN[::-1]):
        static: Any = sg.to_static(function, backend="eager", full_graph=full_graph)
        for values in order:
            assert _outcome(static, values) == _outcome(function, values)


@pytest.mark.parametrize("function", REFUSED)
def test_what_only_pythons_iterator_could_tell_is_refused(function: Callable[[Tensor], Any]) -> None:
    """Something is taken out, maybe: what comes next then, only Python's own iterator knows."""
    static: Any = sg.to_static(function, backend="eager")
    with pytest.raises(sg.CaptureError) as caught:
        static(torch.tensor([1, 2]))
    assert caught.value.reason.code == "SG211"
    for order in (GIVEN, GIVEN[::-1]):
        static = sg.to_static(function, backend="eager", full_graph=False)
        for values in order:
            assert _outcome(static, values) == _outcome(function, values)
