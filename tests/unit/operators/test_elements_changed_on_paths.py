"""Elements that one path changes, of a list that another path makes longer: runs, groups and counts of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import refusal

VALUES = ([3.0, 1.0, 2.0, 5.0], [-3.0, 1.0, -2.0, 5.0], [1.0, 1.0, 2.0, 2.0], [1.0, -4.0, 0.0, 0.0])
CALLS = [torch.tensor(values) for values in VALUES]


class Run:
    """A value, and how often it came."""

    def __init__(self, value: float) -> None:
        self.value, self.count = value, 1


def one_change(x: Tensor) -> Any:
    rows = [[x[0].item(), 1]]
    if x[1] > 0:
        rows[0][1] = 7
    else:
        rows.append([2.0, 3])
    return rows


def runs(x: Tensor) -> Any:
    found: list[Any] = []
    for value in x.tolist():
        if found and found[-1][0] == value:
            found[-1][1] += 1
        else:
            found.append([value, 1])
    return found


def runs_as_dicts(x: Tensor) -> Any:
    found = [{"value": x[0].item(), "count": 1}]
    for value in x.tolist()[1:]:
        if value > found[-1]["value"]:
            found[-1]["count"] += 1
            found[-1]["value"] = value
        else:
            found.append({"value": value, "count": 1})
    return found


def runs_as_objects(x: Tensor) -> Any:
    found: list[Run] = []
    for value in x.tolist():
        if found and found[-1].value == value:
            found[-1].count += 1
        else:
            found.append(Run(value))
    return [(run.value, run.count) for run in found]


def groups(x: Tensor) -> Any:
    found: list[list[float]] = [[]]
    for value in x.tolist():
        if value < 0:
            found.append([])
        else:
            found[-1].append(value)
    return found


def of_tensors(x: Tensor) -> Any:
    found = [[x[0]]]
    for value in x[1:]:
        if value > 1:
            found[-1].append(value * 2)
        else:
            found.append([value])
    return [torch.stack(group).sum() for group in found]


def by_another_name(x: Tensor) -> Any:
    row = [x[0].item(), 1]
    rows = [row]
    if x[1] > 0:
        rows[0][1] = 7
    else:
        rows.append([2.0, 3])
    return rows[0][1], row[1]


def longer_on_a_path(x: Tensor) -> Any:
    row = [x[0].item(), 1]
    rows = [row]
    if x[1] > 0:
        row.append(5)
    else:
        rows.append([2.0, 3, 4])
    return rows


def in_a_loop(x: Tensor) -> Any:
    rows = [[x[0].item(), 1]]
    i = 0
    while i < int(x[1].abs()):
        rows[0][1] += i
        if i > 0:
            rows.append([float(i), 2])
        i += 1
    return rows


def by_its_own_name_while_the_list_grows(x: Tensor) -> Any:
    row = [x[0].item(), 1]
    rows = [row]
    for _ in x[x > -2].tolist():
        rows.append([2.0, 3])
        row[0] = 9.0
    return rows


def an_object_by_its_own_name(x: Tensor) -> Any:
    run = Run(x[0].item())
    found = [run]
    for _ in x[x > -2].tolist():
        found.append(Run(2.0))
        run.value = 9.0
    return [each.value for each in found]


def through_the_list_while_it_grows(x: Tensor) -> Any:
    found = [Run(x[0].item())]
    for value in x[x > -2].tolist():
        found.append(Run(2.0))
        found[0].value = value
        found[-1].count += 1
    return [(each.value, each.count) for each in found]


FUNCTIONS = [
    *(by_its_own_name_while_the_list_grows, an_object_by_its_own_name, through_the_list_while_it_grows),
    *(one_change, runs, runs_as_dicts, runs_as_objects, groups, of_tensors, by_another_name, longer_on_a_path),
    in_a_loop,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(function(x), static(x))


def changed_by_the_old_name(x: Tensor) -> Any:
    row = [x[0].item(), 1]
    rows = [row]
    if x[1] > 0:
        rows[0][1] = 7
    else:
        rows.append([2.0, 3])
    row[0] = 0.0
    return rows


def changed_in_some_iterations(x: Tensor) -> Any:
    run = Run(x[0].item())
    found = [run]
    for value in x[x > -2].tolist():
        found.append(Run(2.0))
        if value > 1:
            run.value = 9.0
    return found[0].value


def of_several_kinds_and_longer(x: Tensor) -> Any:
    rows = [[value, i] for i, value in enumerate(x[x > -4].tolist())]
    rows[0].append(2.0)
    return [row[1] for row in rows]


REFUSED = {changed_by_the_old_name: "SG305", changed_in_some_iterations: "SG203", of_several_kinds_and_longer: "SG203"}


@pytest.mark.parametrize("function", REFUSED)
def test_what_the_list_would_not_have_is_refused(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, CALLS[0]).reason.code == REFUSED[function]


@pytest.mark.parametrize("function", REFUSED)
def test_it_is_right_where_the_graph_may_break(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in CALLS:
        assert_same(function(x), static(x))


def test_gradients_are_eagers() -> None:
    def grouped(x: Tensor) -> Tensor:
        found = [[x[0]]]
        for value in x[1:]:
            if value > 1:
                found[-1].append(value * value)
            else:
                found.append([value])
        return torch.stack([torch.stack(group).prod() for group in found]).sum()

    static = sg.to_static(grouped, backend="eager", full_graph=True)
    for x in CALLS:
        eager, given = (x.clone().requires_grad_(True) for _ in range(2))
        grouped(eager).backward()
        static(given).backward()
        assert_same(eager.grad, given.grad)
