"""A list is filled, put into another one on some paths, and a fresh one goes on: chunks, lines, runs of equal values.

What the name holds afterwards is the old list on one path and a fresh one on another. Whether a list is in the other
one, or is there twice, is told by paths. Where it may really be so, the other names would have to see its changes.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import refusal

CALLS = [torch.tensor(values) for values in ([1, 2, 3, 1, 0], [3, 1, 3, 3, 2], [0, 1, 0, 2, 1], [4, 4, 1, 4, 4])]
SHORT = [torch.tensor(values, dtype=torch.int64) for values in ([], [1], [3], [1, 3], [9, 2, 9])]


def by_size(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        row.append(v)
        if len(row) == 2:
            out.append(row)
            row = []
    if row:
        out.append(row)
    return out


def at_separators(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            row = []
        else:
            row.append(v)
    return out, row


def at_separators_and_the_rest(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            row = []
            continue
        row.append(v)
    out.append(row)
    row.append(7)
    return out, row, out[-1] is row


def unless_empty(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            if row:
                out.append(row)
                row = []
        else:
            row.append(v)
    if row:
        out.append(row)
    return out


def beginning_with_the_value(x: Tensor) -> Any:
    out: list[list[int]] = []
    row: list[int] = []
    for v in x.tolist():
        if v > 2:
            if row:
                out.append(row)
            row = [v]
        else:
            row.append(v)
    if row:
        out.append(row)
    return out


def runs(x: Tensor) -> Any:
    out, row, last = [], [], None
    for v in x.tolist():
        if last is not None and v != last:
            out.append(row)
            row = [v]
        else:
            row.append(v)
        last = v
    if len(row) > 0:
        out.append(row)
    return [(row[0], len(row)) for row in out], out


def in_a_function(x: Tensor) -> Any:
    out: list[list[int]] = []

    def put(row: list[int]) -> list[int]:
        if row:
            out.append(row)
            return []
        return row

    row: list[int] = []
    for v in x.tolist():
        if v > 2:
            row = put(row)
        else:
            row.append(v)
    row = put(row)
    return out, row


def into_two_lists(x: Tensor) -> Any:
    large, small, row = [], [], []
    for v in x.tolist():
        if v > 3:
            large.append(row)
            row = []
        elif v > 1:
            small.append(row)
            row = []
        else:
            row.append(v)
    return large, small, row


def in_an_attribute(x: Tensor) -> Any:
    class Lines:
        def __init__(self) -> None:
            self.out: list[list[int]] = []
            self.row: list[int] = []

    lines = Lines()
    for v in x.tolist():
        if v > 2:
            lines.out.append(lines.row)
            lines.row = []
        else:
            lines.row.append(v)
    return lines.out, lines.row


def in_a_dict(x: Tensor) -> Any:
    found: dict[str, list[list[int]]] = {"whole": [], "rest": []}
    row: list[int] = []
    for v in x.tolist():
        if v > 2:
            found["whole"].append(row)
            row = []
        else:
            row.append(v)
    found["rest"].append(row)
    return found


def changed_through_the_list(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            row = []
        else:
            row.append(v)
    out.append(row)
    for each in out:
        each.append(7)
    out[0].append(8)
    return out


def copies(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row[:])
            row.clear()
        else:
            row.append(v)
    out.append(list(row))
    row.append(7)
    return out, row


def as_tuples(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(tuple(row))
            row = []
        else:
            row.append(v)
    out.append(tuple(row))
    return out, [sum(each) for each in out]


FUNCTIONS = [
    *(by_size, at_separators, at_separators_and_the_rest, unless_empty, beginning_with_the_value, runs, in_a_function),
    *(into_two_lists, in_an_attribute, in_a_dict, changed_through_the_list, copies, as_tuples),
]


def of_unknown_length(function: Callable[[Tensor], Any]) -> Any:
    """A function with a loop over those elements of its tensor that are small."""
    text = inspect.getsource(function).replace("x.tolist()", "x[x < 9].tolist()")
    file, names = f"<{function.__name__} of unknown length>", {**function.__globals__}
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), names)
    return names[function.__name__]


def shared(value: Any, seen: dict[int, int] | None = None) -> Any:
    """Which lists in a result are one object."""
    seen = {} if seen is None else seen
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    mine = seen.setdefault(id(value), len(seen)) if isinstance(value, list) else None
    return [mine, *(shared(each, seen) for each in inside)]


def agree(function: Any, calls: list[Tensor]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in calls:
        expected, found = function(x.clone()), static(x.clone())
        assert_same(expected, found)
        assert shared(found) == shared(expected)
    assert len(static.programs) <= len({len(x) for x in calls})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lists_of_known_length_are_grouped(function: Callable[[Tensor], Any]) -> None:
    agree(function, CALLS)


@pytest.mark.parametrize("function", [each for each in FUNCTIONS if each is not changed_through_the_list])
def test_lists_of_unknown_length_are_grouped(function: Callable[[Tensor], Any]) -> None:
    agree(of_unknown_length(function), [*CALLS, *SHORT])


def test_gradients_go_through_groups() -> None:
    def products(x: Tensor) -> Any:
        out, row = [], []
        for v in x:
            if v > 2:
                if row:
                    out.append(row)
                    row = []
            else:
                row.append(v * 2)
        if row:
            out.append(row)
        return sum([torch.stack(row).prod() for row in out], x.sum() * 0)

    static = sg.to_static(products, backend="eager", full_graph=True)
    for x in CALLS:
        mine, theirs = (x.float().requires_grad_() for _ in range(2))
        results = static(mine), products(theirs)
        for result in results:
            result.backward()
        assert_same(results[1], results[0])
        assert_same(theirs.grad, mine.grad)


def test_many_iterations_are_as_many_questions() -> None:
    x = torch.tensor([1, 3, 1] * 8)
    found = sg.to_static(unless_empty, backend="eager", full_graph=True)(x)
    assert found == unless_empty(x)


# ---- a list that goes on being the element
def kept(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
        row.append(v)
    return out


def kept_on_a_path(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            if v > 3:
                row = []
        else:
            row.append(v)
    return out


def kept_where_it_is_not_put_in_before(x: Tensor) -> Any:
    out, row, first = [], [], [5]
    for v in x.tolist():
        if v > 2:
            if v > 3:
                out.append(first)
                row = []
            else:
                row = first
        row.append(v)
    return out


def kept_by_another_name(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        last = row
        if v > 2:
            out.append(row)
            row = []
        last.append(v)
    return out


def kept_if_the_loop_is_left(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            if v > 3:
                break
            row = []
        else:
            row.append(v)
    row.append(7)
    return out


def kept_by_a_handler(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        try:
            if v > 2:
                out.append(row)
                if v > 3:
                    raise ValueError
                row = []
            else:
                row.append(v)
        except ValueError:
            row.append(7)
    return out


KEPT = [kept, kept_on_a_path, kept_where_it_is_not_put_in_before, kept_by_another_name]
KEPT += [kept_if_the_loop_is_left, kept_by_a_handler]


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("function", KEPT)
def test_a_list_that_goes_on_being_an_element_is_not_changed(function: Callable[[Tensor], Any], unknown: bool) -> None:
    error = refusal(of_unknown_length(function) if unknown else function, CALLS[0])
    assert error.reason.code == "SG305"


# ---- an object from before the loop, which another iteration puts in
def put_in_late(x: Tensor) -> Any:
    out: list[list[int]] = []
    first: list[int] = []
    late = False
    for v in x[x < 9].tolist():
        first.append(0)
        out.append([v])
        if late:
            out.append(first)
        late = v > 2
    return [len(row) for row in out]


def put_in_late_on_a_path(x: Tensor) -> Any:
    out: list[list[int]] = []
    first: list[int] = []
    late = False
    for v in x[x < 9].tolist():
        out.append([v])
        if late:
            if v > 1:
                out.append(first)
            else:
                first.append(v)
        late = v >= 0
    return [len(row) for row in out]


def put_in_by_each(x: Tensor) -> Any:
    out, row = [], []
    for v in x[x < 9].tolist():
        row.append(v)
        out.append(row)
    return [len(each) for each in out]


def elements_of_copies(x: Tensor) -> Any:
    rows, out = [[v] for v in x[x < 9].tolist()], []
    for v in x[x < 9].tolist():
        if v > 1:
            out.append(rows[:])
    out[0][0].append(1)
    return [len(each[0]) for each in out]


@pytest.mark.parametrize("function", [put_in_late, put_in_late_on_a_path, put_in_by_each, elements_of_copies])
def test_a_list_that_some_iteration_puts_in_is_changed_by_none(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG305"


# ---- one object twice
def twice(x: Tensor) -> Any:
    out, row = [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            if v > 3:
                out.append(row)
            row = []
        else:
            row.append(v)
    return out


def twice_in_two_iterations(x: Tensor) -> Any:
    out, row = [], []
    for v in x[x < 9].tolist():
        out.append(row)
        if v > 2:
            row = x[x < 9].tolist()
    return out


def twice_if_the_next_one_does_so(x: Tensor) -> Any:
    out, i, values = [], 0, x[x < 9].tolist()
    while i < len(values):
        if i > 0 and values[i] > 1:
            out.append(row)  # noqa: F821 - it is set in the iteration before
        row = [values[i]]
        if values[i] > 2:
            out.append(row)
        i += 1
    return out


@pytest.mark.parametrize("function", [twice, twice_in_two_iterations, twice_if_the_next_one_does_so])
def test_a_list_that_may_be_in_another_one_twice_is_not_handed_out(function: Callable[[Tensor], Any]) -> None:
    error = refusal(function, CALLS[0])
    assert error.reason.code == "SG305"
    assert re.search("may be twice", str(error))


def in_two_results(x: Tensor) -> Any:
    out, row, last = [], [], []
    for v in x.tolist():
        if v > 2:
            out.append(row)
            last, row = row, []
        else:
            row.append(v)
    return out, last


def test_an_element_is_not_handed_out_beside_its_list() -> None:
    error = refusal(in_two_results, CALLS[0])
    assert error.reason.code == "SG305"
    assert "two results hold one object" in str(error)
