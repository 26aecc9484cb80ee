"""``heapq`` and ``bisect`` over what only the run knows: as Python's own code does it, comparison by comparison."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

t = torch.tensor


def pushed_and_popped(x: Tensor) -> Any:
    heap: list[float] = []
    for i in range(3):
        heapq.heappush(heap, float(x[i]))
    return heapq.heappop(heap), heap


def of_tuples(x: Tensor) -> list[int]:
    heap = [(float(x[i]), i) for i in range(3)]
    heapq.heapify(heap)
    return [heapq.heappop(heap)[1] for _ in range(3)]


def of_tensors(x: Tensor) -> Any:
    heap = [x[0], x[1], x[2]]
    heapq.heapify(heap)
    return heapq.heapreplace(heap, x[3]), heap


def of_tuples_of_tensors(x: Tensor) -> Any:
    heap: list[Any] = []
    heapq.heappush(heap, (x[0], 0))
    heapq.heappush(heap, (x[1], 1))
    return heap


def the_best(x: Tensor) -> Any:
    values = [float(each) for each in x]
    return heapq.nlargest(2, values), heapq.nsmallest(1, values), heapq.nlargest(9, values)


def the_best_by_key(x: Tensor) -> Any:
    return heapq.nsmallest(2, enumerate(x.tolist()), key=lambda pair: pair[1])


def bisected(x: Tensor) -> Any:
    values, first = [1.0, 2.0, 3.0], float(x[0])
    return bisect.bisect_left(values, first), bisect.bisect(values, first), bisect.bisect_right(values, x[1], 1)


def bisected_by_key(x: Tensor) -> Any:
    return bisect.bisect_left([(1, 5), (2, 6), (3, 7)], float(x[0]), key=lambda pair: pair[0])


def inserted(x: Tensor) -> list[float]:
    values: list[float] = []
    for i in range(3):
        bisect.insort(values, float(x[i]))
    bisect.insort_left(values, 2.0)
    return values


def on_one_path(x: Tensor) -> Any:
    heap: list[float] = []
    if x[0] > 2:
        heapq.heappush(heap, float(x[0]))
    return heapq.heappop(heap)


def of_known(x: Tensor) -> Any:
    heap = [3, 1, 2]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    least = heapq.heappop(heap)
    bisect.insort(heap, 7)
    return x + least, heap, heapq.nlargest(2, heap), bisect.bisect(heap, 2)


def merged(x: Tensor) -> Any:
    some, others = sorted(x.tolist()[:2]), [x[2].item(), 5.0]
    down = heapq.merge(sorted(x.tolist()[:2], reverse=True), [2.5, 0.5], reverse=True)
    return list(heapq.merge(some, [], others, [1, 2])), list(down), list(heapq.merge(some))


def merged_by_key(x: Tensor) -> Any:
    pairs = [(x[1].item(), "b"), (9.0, "c")]
    return list(heapq.merge([(x[0].item(), "a")], pairs, key=lambda pair: pair[0]))


def merged_in_a_loop(x: Tensor) -> Any:
    total, kept = 0.0, [v for v in x.tolist() if v > 0.5]
    for v in heapq.merge(kept, [0.5, 1.5]):
        if v > 1:
            total = total * 2 + v
        if total > 6:
            break
    return total


def merged_of_tuples(x: Tensor) -> Any:
    return [i for _, i in heapq.merge([(x[0].item(), 0), (5.0, 1)], ((x[1].item(), 2),))], list(heapq.merge([1], [0]))


INPUTS = (t([3.0, 1.0, 2.0, 4.0]), t([0.1, 2.0, 0.05, 2.0]), t([float("nan"), 1.0, -2.0, 3.0]))
CASES: tuple[Callable[[Tensor], Any], ...] = (
    *(pushed_and_popped, of_tuples, of_tensors, of_tuples_of_tensors, the_best, the_best_by_key),
    *(merged, merged_by_key, merged_in_a_loop, merged_of_tuples),
    *(bisected, bisected_by_key, inserted, on_one_path, of_known),
)


@pytest.mark.parametrize("function", CASES)
def test_agrees(function: Callable[[Tensor], Any]) -> None:
    agree(function, *INPUTS)


_MERGED = pytest.param(merged, marks=pytest.mark.slow)  # 90 s: a heap of iterators, in segments


@pytest.mark.parametrize("function", [of_tuples_of_tensors, bisected, _MERGED, merged_in_a_loop])
def test_without_a_full_graph(function: Callable[[Tensor], Any]) -> None:
    captured = sg.to_static(function, backend="eager", full_graph=False)
    assert repr([captured(x) for x in INPUTS]) == repr([function(x) for x in INPUTS])


def test_of_what_is_known_python_does_it() -> None:
    program = sg.export(of_known, (INPUTS[0],))
    assert [node.op for node in program.graph.graph.nodes].count("call_function") == 1
