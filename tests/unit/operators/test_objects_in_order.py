"""Rows and objects that are sorted, compared and taken apart, where only the run knows which comes first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

CALLS = [torch.tensor(values) for values in ([3, 1, 2], [2, 0, 1], [-1, 5, 5])]


@dataclasses.dataclass(order=True)
class Job:
    """Compared by its priority alone."""

    priority: int
    name: str = dataclasses.field(compare=False, default="job")


def objects_of_a_dataclass(x: Tensor) -> Any:
    jobs = sorted([Job(v, str(i)) for i, v in enumerate(x.tolist())])
    return [job.priority for job in jobs], jobs[0] < jobs[-1]


def the_better_of_two(x: Tensor) -> Any:
    first, second, third = (Job(v) for v in x.tolist())
    best = first if x[0] > 2 else second
    return best < third, third <= best, best == first, max(first, second, third).priority


def rows(x: Tensor) -> Any:
    pairs = sorted(torch.stack([x, x * 2], dim=1).tolist())
    return [a * 10 + b for a, b in pairs], sorted(pairs, key=lambda row: -row[0])[0][1]


def rows_with_places(x: Tensor) -> Any:
    total = 0
    for value, place in sorted([[v, i] for i, v in enumerate(x.tolist())], reverse=True):
        total = total * 10 + value + place
    return total


def taken_apart_by_each_path(x: Tensor) -> Any:
    found = [1, 2] if x[0] > 2 else (3, 4, 5)
    first, *others = found
    return first, others


def in_other_bases(x: Tensor) -> Any:
    first, second, third = x.tolist()
    return bin(first), hex(second * 100), oct(third), bin(second > 1), bin(5)


@pytest.mark.parametrize(
    "function",
    [objects_of_a_dataclass, the_better_of_two, rows, rows_with_places, taken_apart_by_each_path, in_other_bases],
)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(function(x), static(x))


def test_objects_of_several_classes_are_not_compared() -> None:
    @dataclasses.dataclass(order=True)
    class Other:
        priority: int

    def mixed(x: Tensor) -> Any:
        return sorted([Job(int(x[0])), Other(int(x[1]))])

    with pytest.raises(TypeError, match="'<' not supported between instances of 'Other' and 'Job'"):
        sg.to_static(mixed, backend="eager")(CALLS[0])


def test_only_whole_numbers_have_other_bases() -> None:
    def of_a_float(x: Tensor) -> Any:
        return bin(x[0].item() / 2)

    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        sg.to_static(of_a_float, backend="eager")(CALLS[0])
