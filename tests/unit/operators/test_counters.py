"""``next`` of an ``itertools.count`` that the function makes, in branches and loops that began after it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, refusal

CALLS = (tensor([3.0, 2.0]), tensor([2.0, 4.0]), tensor([-3.0, 1.0]))


def in_a_loop(x: Tensor) -> Any:
    counter, found = itertools.count(10, -3), []
    while x.sum() < 10:
        inner = itertools.count(7)
        x = x + next(inner) - next(inner) + 2
        found.append(next(counter))
    return found, next(counter), next(counter, None)


def in_an_arm(x: Tensor) -> Any:
    counter, n = itertools.count(5, 2), 0
    before = next(counter)
    for v in x:
        if v > 0:
            n = next(counter)
    return before, n, next(counter)


def in_an_inner_function(x: Tensor) -> Any:
    counter, found = itertools.count(), 0

    def fresh() -> int:
        return next(counter)

    for v in x.tolist():
        if v > 1:
            found += fresh() * 10
        else:
            found -= fresh()
    return found


def in_a_heap(x: Tensor) -> Any:
    counter, heap, found = itertools.count(), [], 0
    for i in range(int(x[0])):
        heapq.heappush(heap, (float(x[i % 2]), next(counter)))
    while heap:
        value, number = heapq.heappop(heap)
        found = found * 3 + number
        if found < 50 and number < 4:
            heapq.heappush(heap, (value + 1, next(counter)))
    return found


FUNCTIONS = [in_a_loop, in_an_arm, in_an_inner_function, in_a_heap]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


def test_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "program.pt2"
    sg.save(in_an_arm, path, args=(CALLS[0],))
    loaded = sg.load(path)
    for call in CALLS:
        assert_same(in_an_arm(call), loaded(call), f"{call}")


def _looped_over(counter: Any) -> int:
    for i in counter:
        if i > 3:
            break
    return int(i)


@pytest.mark.parametrize(
    "use",
    [
        lambda counter: list(zip(counter, "ab")),
        lambda counter: list(itertools.islice(counter, 2)),
        _looped_over,
        repr,
        str,
        lambda counter: f"{counter}",
        lambda counter: f"{[counter]}",
        lambda counter: "%s" % (counter,),  # noqa: UP031  # what is tested
        print,
        lambda counter: print([counter]),
        lambda counter: counter.__reduce__(),
        lambda counter: counter.__next__(),
        lambda counter: counter,
    ],
)
def test_other_uses_behind_an_arm_are_refused(use: Callable[[Any], Any]) -> None:
    def function(x: Tensor) -> Any:
        counter, n = itertools.count(), 0
        if x[0] > 0:
            n = next(counter)
        return n, use(counter)

    assert refusal(function, CALLS[0]).reason.code in ("SG305", "SG306", "SG302")
