"""What Python functions that are not rewritten change: each call does so, as in eager PyTorch.

They are the user's under `not_to_static`, and those of installed packages.
"""

from __future__ import annotations

import collections
import copy
import queue
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import refusal

Mark = Callable[[Any], Any]
Made = tuple[Callable[[Tensor], Any], Callable[[], Any]]
"""A function, and what shows what it has changed."""

UP, DOWN = torch.ones(2), -torch.ones(2)


def installed(function: FunctionType) -> FunctionType:
    """The function as one of an installed package's."""
    code = function.__code__.replace(co_filename="/opt/python/site-packages/package/module.py")
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


# ---- of what was there before the call
def attributes(mark: Mark) -> Made:
    held = SimpleNamespace(n=0)

    def step() -> None:
        held.n += 1

    step = mark(step)

    def function(x: Tensor) -> Any:
        step()
        return x * held.n

    return function, lambda: held.n


def lists(mark: Mark) -> Made:
    held: list[Any] = []
    add = mark(lambda value: held.append(value))

    def function(x: Tensor) -> Any:
        add(x.shape[0])
        return x * len(held)

    return function, lambda: held


def arguments(mark: Mark) -> Made:
    held = {"n": 0}

    def step(held: dict[str, int]) -> int:
        held["n"] += 1
        return held["n"]

    step = mark(step)
    return lambda x: x * step(held), lambda: held


def nested(mark: Mark) -> Made:
    held = {"a": SimpleNamespace(b=[1])}

    def add() -> None:
        held["a"].b.append(2)

    add = mark(add)

    def function(x: Tensor) -> Any:
        add()
        return x * len(held["a"].b)

    return function, lambda: held


def sets(mark: Mark) -> Made:
    held: set[int] = set()
    add = mark(lambda: held.add(len(held)))

    def function(x: Tensor) -> Any:
        add()
        return x * len(held)

    return function, lambda: held


def deques(mark: Mark) -> Made:
    held: collections.deque[int] = collections.deque(maxlen=2)

    def add(value: int) -> int:
        held.append(value)
        return len(held)

    add = mark(add)
    return lambda x: x * add(x.dim()), lambda: held


def outer_variables(mark: Mark) -> Made:
    n = 0

    def step() -> int:
        nonlocal n
        n += 1
        return n

    step = mark(step)
    return lambda x: x * step(), lambda: n


def a_flag_around(mark: Mark) -> Made:
    done = False

    def once() -> int:
        nonlocal done
        if not done:
            done = True
            return 5
        return 1

    once = mark(once)
    return lambda x: x * once(), lambda: done


COUNT = 0


def global_variables(mark: Mark) -> Made:
    global COUNT
    COUNT = 0

    def step() -> int:
        global COUNT
        COUNT += 1
        return COUNT

    step = mark(step)
    return lambda x: x * step(), lambda: COUNT


class Counted:
    total = 0


def of_classes(mark: Mark) -> Made:
    Counted.total = 0

    def step() -> None:
        Counted.total += 1

    step = mark(step)

    def function(x: Tensor) -> Any:
        step()
        return x * Counted.total

    return function, lambda: Counted.total


def of_modules(mark: Mark) -> Made:
    module: Any = torch.nn.Linear(2, 2)
    module.calls = 0

    def step(module: Any) -> None:
        module.calls += 1

    step = mark(step)

    def function(x: Tensor) -> Any:
        step(module)
        return x * module.calls

    return function, lambda: module.calls


def tables(mark: Mark) -> Made:
    held: dict[int, Tensor] = {}

    def found(size: int) -> Tensor:
        if size not in held:
            held[size] = torch.arange(size) * 2.0
        return held[size]

    found = mark(found)
    return lambda x: x + found(x.shape[0]), lambda: {key: value.tolist() for key, value in held.items()}


def values_of_the_run(mark: Mark) -> Made:
    held: list[Any] = []
    add = mark(lambda value: held.append(value))

    def function(x: Tensor) -> Any:
        y = x * 2
        add(y)
        add(y.sum().item())
        return y

    return function, lambda: [each.tolist() if isinstance(each, Tensor) else each for each in held]


def before_it_raises(mark: Mark) -> Made:
    held: list[int] = []

    def check(value: int) -> None:
        held.append(value)
        raise ValueError("too many")

    check = mark(check)

    def function(x: Tensor) -> Any:
        try:
            check(x.shape[0])
        except ValueError as error:
            return x * 2, str(error)
        return x

    return function, lambda: held


# ---- on some paths
def in_arms(mark: Mark) -> Made:
    held: list[str] = []
    add = mark(lambda value: held.append(value))

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            add("up")
        else:
            add("down")
        return x

    return function, lambda: held


def in_a_loop(mark: Mark) -> Made:
    held = {"n": 0}

    def step() -> None:
        held["n"] += 1

    step = mark(step)

    def function(x: Tensor) -> Any:
        x = x.abs()
        while x.sum() < 10:
            x = x * 2
            step()
        return x

    return function, lambda: held


def of_what_the_call_makes(mark: Mark) -> Made:
    def fill(held: list[int], other: Any) -> None:
        held.append(1)
        other.items.append(2)
        other.n += 3

    fill = mark(fill)

    def function(x: Tensor) -> Any:
        held: list[int] = []
        other = SimpleNamespace(n=0, items=[])
        if x.sum() > 0:
            fill(held, other)
        return x * len(held), other.n, len(other.items)

    return function, lambda: None


MAKERS: tuple[Callable[[Mark], Made], ...] = (
    *(attributes, lists, arguments, nested, sets, deques, outer_variables, a_flag_around, global_variables),
    *(of_classes, of_modules, tables, values_of_the_run, before_it_raises, in_arms, in_a_loop),
    of_what_the_call_makes,
)


@pytest.mark.parametrize("full_graph", [True, False], ids=["one graph", "segments"])
@pytest.mark.parametrize("mark", [sg.not_to_static, installed], ids=["not_to_static", "installed"])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_each_call_changes_it(make: Callable[[Mark], Made], mark: Mark, full_graph: bool) -> None:
    def outcomes(made: Made, called: Callable[[Tensor], Any]) -> list[Any]:
        return [copy.deepcopy((repr(called(x)), made[1]())) for x in (UP, DOWN, UP, UP, DOWN)]

    plain = make(lambda function: function)
    expected = outcomes(plain, plain[0])
    made = make(mark)
    options = {"full_graph": True} if full_graph else {"full_graph": False, "strict": True}
    assert outcomes(made, sg.to_static(made[0], backend="eager", **options)) == expected


def test_once_it_changes_nothing_more_there_is_one_program() -> None:
    function, _ = tables(sg.not_to_static)
    static = sg.to_static(function, backend="eager")
    for _ in range(5):
        static(UP)
    assert static.cache_info().programs == 2


def test_what_a_program_cannot_repeat_is_refused() -> None:
    array = np.zeros(2)

    @sg.not_to_static
    def step() -> None:
        np.add.at(array, [0], 1)

    def function(x: Tensor) -> Tensor:
        step()
        return x

    assert refusal(function, UP).reason.code == "SG305"
    static = sg.to_static(function, backend="eager", full_graph=False)
    array[:] = 0
    for _ in range(3):
        static(UP)
    assert array.tolist() == [3, 0]


def test_what_follows_is_watched_as_before() -> None:
    """A function that is left alone says nothing of the code behind it."""
    held: list[Any] = []

    class Loud:
        def __float__(self) -> float:
            held.append(1)
            return 2.0

    loud, nothing = Loud(), sg.not_to_static(lambda: None)

    def function(x: Tensor) -> Any:
        nothing()
        return x * float(loud)

    static = sg.to_static(function, backend="eager", full_graph=False)
    for number in range(3):
        assert static(UP).tolist() == [2.0, 2.0]
        assert len(held) == number + 1


def test_what_nobody_can_look_into_is_not_seen() -> None:
    held: queue.SimpleQueue[int] = queue.SimpleQueue()
    add = sg.not_to_static(lambda: held.put(1))

    def function(x: Tensor) -> Any:
        add()
        return x

    static = sg.to_static(function, backend="eager")
    for _ in range(3):
        static(UP)
    assert held.qsize() == 1
