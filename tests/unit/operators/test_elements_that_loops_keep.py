"""An element of a list that grew in the run is left in a variable, an attribute, a container, or returned by a loop.

What the loop leaves there stands for the element, and the list has a copy of it: neither may be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import refusal

CALLS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [1.0, 0.0, -1.0])]


class Holder:
    """An object with any attributes."""


def rows(x: Tensor) -> list[list[float]]:
    made: list[list[float]] = []
    for v in x.tolist():
        if v > -100:
            made.append([v])
    return made


def found(made: list[list[float]]) -> list[float]:
    for row in made:
        if row[0] > 0:
            return row
    return made[0]


def in_a_variable(x: Tensor) -> Any:
    made, last = rows(x), [0.0]
    for row in made:
        last = row
    last.append(5.0)
    return made


def in_a_variable_of_the_next_iteration(x: Tensor) -> Any:
    made, i = rows(x), 0
    while i < len(made):
        if i > 0:
            last.append(1.0)  # noqa: F821 - it is set in the iteration before
        last = made[i]  # noqa: F841 - as above
        i += 1
    return made


def in_a_variable_on_one_path(x: Tensor) -> Any:
    made, last = rows(x), [0.0]
    for row in made:
        if row[0] > 1:
            last = row
    last.append(5.0)
    return made


def in_a_tuple(x: Tensor) -> Any:
    made, best = rows(x), ([0.0], 0)
    for i, row in enumerate(made):
        if row[0] > best[0][0]:
            best = (row, i)
    best[0].append(7.0)
    return made


def in_an_attribute(x: Tensor) -> Any:
    made, holder = rows(x), Holder()
    holder.last = [0.0]  # type: ignore[attr-defined]  # any attribute
    for row in made:
        holder.last = row  # type: ignore[attr-defined]  # as above
    holder.last.append(5.0)  # type: ignore[attr-defined]  # as above
    return made


def in_a_dict(x: Tensor) -> Any:
    made, held = rows(x), {"last": [0.0]}
    for row in made:
        held["last"] = row
    held["last"].append(5.0)
    return made


def in_a_dict_handed_on(x: Tensor) -> Any:
    made, held = rows(x), {"last": [0.0], "before": [0.0]}
    for row in made:
        held["last"], held["before"] = row, held["last"]
    held["before"].append(5.0)
    return made


def in_a_list(x: Tensor) -> Any:
    made, held = rows(x), [[0.0], [1.0]]
    for row in made:
        held[0] = row
    held[0].append(5.0)
    return made


def in_two_lists(x: Tensor) -> Any:
    made: list[list[float]] = []
    held = [[0.0]]
    for v in x.tolist():
        if v > -5:
            row = [v]
            made.append(row)
            held[0] = row
    held[0].append(5.0)
    return made


def returned_by_a_loop(x: Tensor) -> Any:
    made = rows(x)
    found(made).append(3.0)
    return made


def returned_by_a_tail_call(x: Tensor) -> Any:
    made = rows(x)

    def last(i: int) -> list[float]:
        if i >= len(made) - 1:
            return made[i]
        return last(i + 1)

    last(0).append(4.0)
    return made


def returned_by_a_recursion(x: Tensor) -> Any:
    made = rows(x)

    def last(i: int) -> list[float]:
        if i >= len(made) - 1:
            return made[i]
        below = last(i + 1)
        return below

    last(0).append(4.0)
    return made


FUNCTIONS = [
    *(in_a_variable, in_a_variable_of_the_next_iteration, in_a_variable_on_one_path, in_a_tuple, in_an_attribute),
    *(in_a_dict, in_a_dict_handed_on, in_a_list, in_two_lists),
    *(returned_by_a_loop, returned_by_a_tail_call, returned_by_a_recursion),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_refused_to_change_one(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG305"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_changed_where_the_graph_may_break(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in CALLS:
        assert_same(function(x), static(x))


def read(x: Tensor) -> Any:
    made, last, best = rows(x), [0.0], 0.0
    for row in made:
        if last[0] > best:
            best = last[0]
        last = row
    return made, [*last], best, found(made)[0]


def test_it_is_read() -> None:
    static = sg.to_static(read, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(read(x), static(x))
    assert static.cache_info().programs == 1


def of_a_dict_from_before(x: Tensor, entry: dict[str, int]) -> list[dict[str, int]]:
    found = []
    if x.sum() > 0:
        found.append(entry)
    return found


@pytest.mark.slow
def test_a_copy_of_a_dict_that_the_collector_does_not_know_is_no_result() -> None:
    assert refusal(of_a_dict_from_before, torch.ones(2), {"a": 1}).reason.code == "SG305"
