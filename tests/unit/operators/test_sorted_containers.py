"""Lists, dicts, objects and tuples of lists that are sorted by what only the run knows, then carried and changed."""

from __future__ import annotations

import bisect
import functools
import heapq
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import refusal

CALLS = [torch.tensor(v) for v in ([3.0, 1.0, 2.0, 5.0], [-3.0, 1.0, -2.0, 0.0], [1.0, 1.0, 2.0, 2.0])]
SCORES = [
    torch.tensor([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]),
    torch.tensor([[0.8, 0.1, 0.1], [0.05, 0.05, 0.9], [0.3, 0.4, 0.3]]),
    torch.tensor([[0.3, 0.3, 0.4], [0.3, 0.4, 0.3]]),
]


class Job:
    """Ordered by its priority."""

    def __init__(self, priority: float, number: int) -> None:
        self.priority, self.number = priority, number

    def __lt__(self, other: Job) -> bool:
        return self.priority < other.priority


# ---- beam search, as people write it
def beams_of_lists(scores: Tensor) -> Any:
    sequences: list[Any] = [[[], 0.0]]
    for row in scores:
        candidates = []
        for i in range(len(sequences)):
            sequence, score = sequences[i]
            for j in range(len(row)):
                candidates.append([[*sequence, j], score - math.log(row[j].item())])
        sequences = sorted(candidates, key=lambda entry: entry[1])[:2]
    return sequences


def beams_until_a_bound(scores: Tensor) -> Any:
    sequences: list[Any] = [[[], 0.0]]
    step = 0
    while step < len(scores) and (step == 0 or sequences[0][1] < 1.5):
        candidates = [[[*s, j], v - scores[step, j].log().item()] for s, v in sequences for j in range(3)]
        candidates.sort(key=lambda entry: entry[1])
        sequences = candidates[:2]
        step += 1
    return sequences


def beams_of_tuples(scores: Tensor) -> Any:
    sequences: list[Any] = [([], 0.0)]
    step = 0
    while step < len(scores) and (step == 0 or sequences[0][1] < 1.5):
        candidates = [([*s, j], v - scores[step, j].log().item()) for s, v in sequences for j in range(3)]
        sequences = sorted(candidates, key=lambda entry: entry[1])[:2]
        step += 1
    return sequences


def beams_of_dicts(scores: Tensor) -> Any:
    beams: list[Any] = [{"tokens": [], "score": 0.0}]
    step = 0
    while step < len(scores) and (step == 0 or beams[0]["score"] > -1.5):
        grown = []
        for beam in beams:
            for j in range(3):
                grown.append({"tokens": [*beam["tokens"], j], "score": beam["score"] + scores[step, j].log().item()})
        beams = sorted(grown, key=lambda beam: beam["score"], reverse=True)[:2]
        step += 1
    return beams


def beams_that_end(scores: Tensor) -> Any:
    beams: list[Any] = [[0.0, [0]]]
    ended: list[Any] = []
    for step in range(len(scores)):
        grown: list[Any] = []
        for score, tokens in beams:
            if tokens[-1] == 2:
                ended.append([score, tokens])
                continue
            grown += [[score + scores[step, j].item(), [*tokens, j]] for j in range(3)]
        if not grown:
            break
        grown.sort(key=lambda beam: beam[0], reverse=True)
        beams = grown[:2]
    ended += beams
    return max(ended, key=lambda beam: beam[0] / len(beam[1]))


BEAMS = [beams_of_lists, beams_until_a_bound, beams_of_tuples, beams_of_dicts, beams_that_end]


@pytest.mark.parametrize("function", BEAMS)
def test_a_beam_search_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for scores in SCORES:
        assert_same(function(scores), static(scores))


# ---- objects that say which is less
def by_a_method(x: Tensor) -> Any:
    return [job.number for job in sorted([Job(v, i) for i, v in enumerate(x.tolist())])]


def by_a_method_from_behind(x: Tensor) -> Any:
    return [job.number for job in sorted([Job(v, i) for i, v in enumerate(x[x > -3].tolist())], reverse=True)]


def by_a_key_with_a_method(x: Tensor) -> Any:
    return sorted(x.tolist(), key=lambda v: Job(abs(v), 0))


def by_a_comparison(x: Tensor) -> Any:
    return sorted(x.tolist(), key=functools.cmp_to_key(lambda a, b: b - a))


def by_a_comparison_of_unknown_many(x: Tensor) -> Any:
    return sorted(x[x > -3].tolist(), key=functools.cmp_to_key(lambda a, b: (abs(a) > abs(b)) - (abs(a) < abs(b))))


def changed_behind_it(x: Tensor) -> Any:
    jobs = [Job(v, i) for i, v in enumerate(x[x > -3].tolist())]
    jobs.sort()
    for job in jobs:
        job.priority += 1
    jobs[0].number = 99
    return [(job.number, job.priority) for job in jobs]


def in_a_heap(x: Tensor) -> Any:
    heap: list[Job] = []
    for i, v in enumerate(x[x > -3].tolist()):
        heapq.heappush(heap, Job(v, i))
    order = []
    while heap:
        order.append(heapq.heappop(heap).number)
    return order


def put_in_their_places(x: Tensor) -> Any:
    jobs: list[Job] = []
    for i, v in enumerate(x[x > -3].tolist()):
        bisect.insort(jobs, Job(v, i))
    return [job.number for job in jobs]


def two_in_order(x: Tensor) -> Any:
    low, high = sorted([[x[0].item(), [1]], [x[1].item(), [2]]], key=lambda row: row[0])
    return low, high[1]


FUNCTIONS = [
    *(by_a_method, by_a_method_from_behind, by_a_key_with_a_method, by_a_comparison, by_a_comparison_of_unknown_many),
    *(changed_behind_it, in_a_heap, put_in_their_places, two_in_order),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(function(x), static(x))


# ---- two names of one
def the_old_name(x: Tensor) -> Any:
    first, second = [x[0].item()], [x[1].item()]
    low, _ = sorted([first, second])
    low.append(0.0)
    return first, second


def the_old_list(x: Tensor) -> Any:
    rows = [[v, 0.0] for v in x.tolist()]
    ordered = sorted(rows, key=lambda row: row[0])
    ordered[0][1] = 1.0
    return rows


@pytest.mark.parametrize("function", [the_old_name, the_old_list])
def test_what_may_be_the_same_is_refused(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, CALLS[0]).reason.code in ("SG203", "SG305")


@pytest.mark.parametrize("function", [the_old_name, the_old_list])
def test_it_is_right_where_the_graph_may_break(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in CALLS:
        assert_same(function(x), static(x))


def test_one_of_a_list_and_that_list_are_refused_as_results() -> None:
    def both(x: Tensor) -> Any:
        rows = sorted([[v, 0.0] for v in x.tolist()], key=lambda row: row[0])
        return rows[0], rows

    assert refusal(both, CALLS[0]).reason.code == "SG305"


def test_gradients_are_eagers() -> None:
    def ranked(x: Tensor) -> Tensor:
        rows = sorted([[v.item(), v * (i + 1)] for i, v in enumerate(x)], key=lambda row: row[0])
        return torch.stack([row[1] * place for place, row in enumerate(rows)]).sum()

    static = sg.to_static(ranked, backend="eager", full_graph=True)
    for x in CALLS:
        eager, given = (x.clone().requires_grad_(True) for _ in range(2))
        ranked(eager).backward()
        static(given).backward()
        assert_same(eager.grad, given.grad)
