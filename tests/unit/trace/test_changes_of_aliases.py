"""A container that only the run knows which one it is, and is changed: all its names see that, as in Python."""

from __future__ import annotations

import collections
import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim.lbfgs import _strong_wolfe

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.cases.harness import python_module
from tests.front_ends import through_bytecode


def chosen(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = a if x[0] > 0 else b
    c.append(x[1])
    c[0] = c[0] + 1
    return a, b, c, c is a


def chosen_or_new(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = [x[0], x[1]]
    if x[0] > 0:
        c = a
    c += [x[2], x[2]]
    del c[0]
    return a, b, c, c is a


def changed_by_its_own_name(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = [x[0]]
    if x[0] > 0:
        c = a
    a.insert(0, x[1])  # which the run finds in `c`, or not
    return a, b, c, len(c), c[0]


def chosen_twice(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = a
    if x[0] > 0:
        c = b
    if x[1] > 0:
        b = c
    b.append(x[0])
    c.append(x[1])
    a.append(x[2])
    return a, b, c, c is a, b is a, b is c


def chosen_and_changed_in_an_arm(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = a if x[0] > 0 else b
    if x[1] > 0:
        c.append(x[1])
    else:
        a.clear()
    return a, b, c, len(c)


def chosen_and_changed_in_a_loop(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = a if x[0] > 0 else b
    while len(c) < 5 and x.sum() < 20:
        c.append(x[1])
        x = x + 1
    return a, b, c, x


def bracketed(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    for i in range(3):
        if x[0] > i:
            c = [x[0], x[1]]
            break
        if x[1] > i:
            c = [x[2]]
            break
    if x.sum() > 3:
        c = [0.5 * x[0], x[1]]
    low, high = (0, 1) if c[0] <= c[-1] else (1, 0)
    while len(c) > 1 and x.sum() < 20:
        c[high] = c[low] + 1
        x = x + 2
    return c, x


def popped(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = b if x[0] > 0 else a
    last = c.pop()
    return a, b, c, last, len(a), len(b)


def its_own_name_is_rebound(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = [x[0]]
    if x[0] > 0:
        c = a
    a[0] = x[1]  # `c` stays what it was where it is not this
    return c, c is a


def chosen_and_sorted(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    """As a simplex search: each round sorts its points, and leaves new ones or changes the last."""
    points = [(v, i) for i, v in enumerate(x.tolist())]
    for _ in range(3):
        points.sort(key=lambda point: point[0])
        if points[0][0] < 1:
            points = [points[0], *((v + 1, i) for v, i in points[1:])]
        else:
            points[-1] = (0.0, 7)
    c = a if x[0] > 0 else b
    c.append(x[0])
    c.sort(reverse=True)
    return a, b, c, c is a, points


@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize(
    "function",
    [chosen, chosen_or_new, chosen_and_sorted, changed_by_its_own_name, its_own_name_is_rebound, chosen_twice,
     chosen_and_changed_in_an_arm, chosen_and_changed_in_a_loop, bracketed, popped],
)  # fmt: skip
def test_lists(function: Any, front_end: str) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        check(function)


POINTS = ([1.0, 1.0, 1.0], [1.0, -1.0, 2.0], [-1.0, 1.0, 3.0], [-2.0, -1.0, 0.0], [9.0, -3.0, 5.0])


def check(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for point in POINTS:
        outcomes = []
        for called in (function, static):
            args = torch.tensor(point), [torch.tensor(5.0)], [torch.tensor(7.0), torch.tensor(8.0)]
            try:
                given = called(*args)
                lists = [each for each in given if isinstance(each, list)]
                same = [[each is other for other in (*args, *lists)] for each in lists]
                outcomes.append((given, args, same))
            except UnboundLocalError as error:
                outcomes.append((str(error), args, None))
        assert_same(*outcomes)
    assert static.cache_info().programs == 1


def keyed(x: Tensor, one: Any, other: Any) -> Any:
    held = one if x[0] > 0 else other
    held["k"] = x[1]
    held.update(n=x[2])
    if x[1] > 0:
        held["k"] = held["n"]
    return held["n"], len(one), len(other)


def gathered(x: Tensor, one: Any, other: Any) -> Any:
    held = one if x[0] > 0 else other
    held.add(3)
    held.discard(1)
    return len(one), len(other), 3 in one, 3 in other


def queued(x: Tensor, one: Any, other: Any) -> Any:
    held = one if x[0] > 0 else other
    held.appendleft(x[1])
    held.append(x[2])
    held.popleft()
    return one, other, held


@pytest.mark.parametrize(
    ("function", "make"),
    [(keyed, lambda: {"n": 1}), (gathered, lambda: {1, 2}), (queued, lambda: collections.deque([torch.tensor(4.0)]))],
)
def test_other_containers(function: Any, make: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for point in POINTS:
        outcomes = []
        for called in (function, static):
            one, other = make(), make()
            outcomes.append((called(torch.tensor(point), one, other), one, other))
        assert_same(*outcomes)


def with_objects(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = a if x[0] > 0 else b
    c.append([x[1]])
    return a


def test_lists_that_hold_lists_are_refused() -> None:
    """Those of one path are not those of the other."""
    with pytest.raises(sg.CaptureError, match="is another one on each path") as raised:
        sg.to_static(with_objects)(torch.ones(2), [], [])
    assert raised.value.reason.code == "SG305"


def another_after_the_loop(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = [x[0]]
    while x.sum() < 5:
        x = x + 1
        c = a
    c.append(x[1])
    return a, c, c is a


def one_of_two_after_the_loop(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    c = [x[0]]
    while x.sum() < 9:
        c = a if x[0] > 0 else b
        c.append(x[1])
        x = x + 2
    b.append(x[2])
    return a, b, c, c is a, c is b, x


def exchanged_in_a_loop(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    while x.sum() < 7:
        a, b = b, a
        a[0] = a[0] + x[0]
        x = x + 1
    return a, b, a is b, x


def one_that_the_function_made(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    made, c = [x[0]], a
    while x.sum() < 5:
        x = x + 1
        c = made
    c.append(x[1])
    return made, c, c is made, c is a


def one_left_by_a_break(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    for each in (a, b):
        if x[0] > len(each):
            break
    else:
        each = [x[0]]
    each.append(x[1])
    return a, b, each


@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize(
    "function",
    [another_after_the_loop, one_of_two_after_the_loop, exchanged_in_a_loop, one_that_the_function_made,
     one_left_by_a_break],
)  # fmt: skip
def test_what_a_loop_leaves_may_be_an_older_list(function: Any, front_end: str) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        check(function)


def found(x: Tensor, first: Any, second: Any) -> Any:
    held = first
    while x.sum() < 5:
        x = x + 1
        held = second
    return x, held, held is second


@pytest.mark.parametrize("make", [lambda n: {"n": n}, lambda n: SimpleNamespace(n=n), lambda n: [torch.full((2,), n)]])
def test_what_a_loop_leaves_is_handed_out_as_itself(make: Any) -> None:
    static = sg.to_static(found, backend="eager")
    for value in (0.0, 9.0):
        first, second = make(1.0), make(2.0)
        _, held, told = static(torch.full((3,), value), first, second)
        assert held is (second if value == 0.0 else first)
        assert told is (value == 0.0)


def two_names_or_a_tensor(x: Tensor) -> Any:
    if x[1] > 0:
        x = x + 1
    else:
        a = b = []
        if x[0] > 1:
            b.insert(0, x[0])
        return a, b
    return x


def test_two_names_that_one_path_hands_out(tmp_path: Path) -> None:
    static = sg.to_static(two_names_or_a_tensor, backend="eager")
    sg.save(two_names_or_a_tensor, tmp_path / "two_names.py", args=(torch.ones(3),))
    written = python_module(tmp_path / "two_names.py").two_names_or_a_tensor
    for point in POINTS:
        for called in (static, written):
            given = called(torch.tensor(point))
            assert_same(two_names_or_a_tensor(torch.tensor(point)), given)
            assert isinstance(given, Tensor) or given[0] is given[1]


def put_into_a_handler(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    made, held = [x[0]], a
    try:
        if x[2] > 1:
            held = made
        if x[0] > 0:
            raise ValueError("found")
        made = b
    except ValueError:
        held[:] = [x[1], x[2]]
    return made, held, made is held


def left_to_a_handler(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    made: list[Any] = []
    holder = SimpleNamespace(held=a)
    try:
        holder.held = made
        if x[0] > 1:
            raise ValueError("found")
        made.append(x[0])
    except ValueError:
        made.append(x[2])
    return holder.held, made, holder.held is made


def two_names_before_a_loop(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    one: list[Any] = []
    other = one
    while x.sum() < 8:
        if x[0] > 1:
            other = []
        other.append(x[0])
        x = x + 1
    return one, other, one is other


def two_attributes_before_a_loop(x: Tensor, a: list[Any], b: list[Any]) -> Any:
    holder = SimpleNamespace(one=[x[0]])
    holder.other = holder.one
    while x.sum() < 8:
        if x[0] > 1:
            holder.other = [x[2]]
        x = x + 1
    holder.other.append(x[1])
    return holder.one, holder.other, holder.one is holder.other


@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize(
    "function", [put_into_a_handler, left_to_a_handler, two_names_before_a_loop, two_attributes_before_a_loop]
)
def test_handlers_and_two_names(function: Any, front_end: str) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        check(function)


def partly_changed(x: Tensor, one: set[Any], other: set[Any]) -> Any:
    held = one if x[0] > 0 else other
    try:
        held.update([5, []])  # type: ignore[list-item]  # no key: it fails when 5 has been added
    except TypeError:
        x = -x
    return x, 5 in one


def test_what_fails_halfway_is_refused() -> None:
    with pytest.raises(sg.CaptureError, match="is another one on each path"):
        sg.to_static(partly_changed)(torch.ones(2), {1}, {2})


def searched(x: Tensor, direction: Tensor) -> Any:
    """The line search of `torch.optim.LBFGS`, whose brackets hold one point or two."""

    def valley(x: Tensor) -> tuple[Tensor, Tensor]:
        value = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        inner = -400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0])
        return value, torch.stack([inner, 200 * (x[1] - x[0] ** 2)])

    value, slope = valley(x)
    return _strong_wolfe(
        lambda x, t, d: valley(x + t * d), x, torch.ones((), dtype=x.dtype), direction, value, slope,
        slope.dot(direction),
    )  # fmt: skip


def test_a_line_search_of_torch(tmp_path: Path) -> None:
    static = sg.to_static(searched, backend="eager")
    starts = [
        ([1.0, -1.0], [-0.8, 0.4]),
        ([-1.2, 1.0], [0.01, 0.02]),
        ([3.0, 2.0], [-0.5, 1.0]),
        ([0.0, 0.0], [1e-4, 0.0]),
    ]
    calls = [tuple(torch.tensor(each, dtype=torch.float64) for each in start) for start in starts]
    for call in calls:
        assert_same(searched(*call), static(*call))
    assert static.cache_info().programs == 1
    sg.save(searched, tmp_path / "searched.py", args=calls[0])
    written = python_module(tmp_path / "searched.py")
    for call in calls:
        assert_same(searched(*call), written.searched(*call))
