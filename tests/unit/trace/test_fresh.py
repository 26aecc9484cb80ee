"""What a function makes and gives is made anew by each call, or the capture is refused: calls share nothing."""

from __future__ import annotations

import array
import collections
import functools
import io
import itertools
import random
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import CaptureError
from tests.sampling import few

X = torch.ones(2)


class Callable_:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.count


class Slotted:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.count


def local_class() -> Any:
    class Counter:
        count = 0

        @classmethod
        def step(cls) -> int:
            cls.count += 1
            return cls.count

    return Counter.step


def with_a_list() -> Any:
    seen: list[int] = []

    def add() -> int:
        seen.append(1)
        return len(seen)

    return add


def with_a_number() -> Any:
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return count

    return step


def with_a_tuple() -> Any:
    named = collections.namedtuple("named", "a b")
    return named(1, 2)._replace


def shared_values() -> Any:
    number = 3
    return lambda: number


MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], bool]] = {
    "an object that can be called": (Callable_, lambda made: made(), True),
    "an object with slots": (Slotted, lambda made: made(), True),
    "a class": (local_class, lambda made: made(), False),
    "a function with a list": (with_a_list, lambda made: made(), False),
    "a function with a number that it changes": (with_a_number, lambda made: made(), False),
    "a function with a number": (shared_values, lambda made: made(), True),
    "a named tuple": (with_a_tuple, lambda made: tuple(made(a=5)), False),
    "a partial of a list's method": (
        lambda: functools.partial([].append, 1),
        lambda made: (made(), len(made.func.__self__)),
        False,
    ),
    "a generator of random numbers": (lambda: random.Random(3), lambda made: made.random(), True),
    "a text file": (lambda: io.StringIO("a"), lambda made: made.read(), False),
    "a lock": (threading.Lock, lambda made: made.acquire(False), False),
    "a lock for one thread": (threading.RLock, lambda made: made._recursion_count() or made.acquire(False), False),
    "a counter": (itertools.count, next, False),
    "an iterator": (lambda: iter([1, 2]), next, False),
    "a generator": (lambda: (each for each in range(3)), next, False),
    "an array": (lambda: array.array("i", [1]), lambda made: (made.append(1), len(made)), True),
    "bytes": (lambda: bytearray(b"a"), lambda made: (made.append(1), len(made)), True),
    "a list of a class of its own": (lambda: collections.UserList([1]), lambda made: (made.append(1), len(made)), True),
    "a namespace": (lambda: types.SimpleNamespace(a=[]), lambda made: (made.a.append(1), len(made.a)), True),
}


def used(function: Any, use: Callable[[Any], Any]) -> list[Any]:
    return [use(function(X)[0]) for _ in range(4)]


@pytest.mark.parametrize("what", MADE)
def test_with_a_full_graph(what: str) -> None:
    make, use, is_taken = MADE[what]

    def makes(x: Tensor) -> Any:
        return make(), x + 1

    static = sg.to_static(makes, backend="eager")
    if is_taken:
        assert used(static, use) == used(makes, use)
    else:
        with pytest.raises(CaptureError, match="SG306"):
            static(X)


@pytest.mark.parametrize("what", few(MADE, slow=("a named tuple",)))
def test_in_segments(what: str) -> None:
    make, use, _ = MADE[what]

    def makes(x: Tensor) -> Any:
        return make(), x + 1

    def between(x: Tensor) -> Any:
        value = make()
        print(x.sum().item())
        return value, x + 1

    for function in (makes, between):
        static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
        assert used(static, use) == used(function, use)


def test_what_is_refused_is_named() -> None:
    @sg.to_static
    def adder(x: Tensor) -> Any:
        seen: list[Any] = []

        def add(value: Any) -> None:
            seen.append(value)

        return add, x

    with pytest.raises(CaptureError, match="the function 'add' that keeps 'seen' of the call is returned"):
        adder(X)


def test_a_schedulers_optimizer_in_segments() -> None:
    """The scheduler puts a function into its optimizer that holds on to the optimizer."""

    def train(x: Tensor) -> Any:
        weight = torch.zeros(2, requires_grad=True)
        optimizer = torch.optim.Adam([weight], lr=0.5)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        losses = []
        for _ in range(4):
            loss = ((weight - x) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append((loss.item(), scheduler.get_last_lr()))
            print(losses[-1])
        return weight.detach(), losses

    static = sg.to_static(train, full_graph=False, strict=True, backend="eager")
    for _ in range(3):
        expected, actual = train(X), static(X)
        torch.testing.assert_close(actual[0], expected[0])
        assert actual[1] == expected[1]


class Key:
    def __init__(self, value: Any = 0) -> None:
        self.value = value


TABLE: dict[Any, Any] = {}


def keyed(x: Tensor) -> Any:
    return {Key(): x}


def keyed_in_a_pair(x: Tensor) -> Any:
    return {(Key(x), 1): x}


def keyed_by_a_tensor(x: Tensor) -> Any:
    return {x + 1: 1}


def keyed_in_a_table(x: Tensor) -> Any:
    TABLE[Key()] = x
    return x


KEYED = [keyed, keyed_in_a_pair, keyed_by_a_tensor, keyed_in_a_table]


@pytest.mark.parametrize("function", KEYED, ids=lambda each: each.__name__)
def test_a_key_that_the_function_makes_is_not_shared(function: Any) -> None:
    with pytest.raises(CaptureError, match="with a key that the function makes") as caught:
        sg.to_static(function, backend="eager")(X)
    assert caught.value.reason.code == "SG306"
    TABLE.clear()
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    keys = []
    for number in range(4):
        result = static(X * number)
        ((key, value),) = (TABLE if function is keyed_in_a_table else result).items()
        keys.append(key)
        assert value is 1 or torch.equal(value, X * number)  # noqa: F632  # a tensor has an equality of its own
        TABLE.clear()
    assert len(set(map(id, (each[0] if isinstance(each, tuple) else each for each in keys)))) == 4


def test_a_key_that_the_caller_gives_is_the_callers() -> None:
    static = sg.to_static(lambda x, key: {key: x, (key, 1): x}, backend="eager")
    for key in (Key(), Key(), X, X + 1):
        alone, paired = static(X, key)
        assert alone is key
        assert paired[0] is key
