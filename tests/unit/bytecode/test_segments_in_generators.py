"""Breaks in generators and in context managers made of them: Python sees what takes their next value."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.bytecode.segmented import CALLS, Record, agrees, reasons


def rows(x: Tensor) -> Iterator[Tensor]:
    for row in x:
        print("row", row.item())
        yield row * 2
    print("no more")


def one_value(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        made = rows(x)
        first = next(made)
        print("first", first.item())
        return first + 1, next(made), next(made), next(made, None)

    return f


def all_values(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        return torch.stack(list(rows(x))), sum(rows(x)), [*rows(x)], max(rows(x), key=lambda row: row.item())

    return f


def a_loop(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        total = x.sum()
        for number, row in enumerate(rows(x)):
            total = total + row * number
            note(total.item())
            if row.item() > 5:
                break
        else:
            print("to the end")
        return total

    return f


def defined_inside(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        def halves() -> Iterator[Tensor]:
            y = x
            while y.abs().max().item() > 0.5:
                y = y / 2
                print("half", y.sum().item())
                yield y

        return list(halves())

    return f


def sent_to(note: Record) -> Any:
    def running() -> Any:
        total = 0.0
        while True:
            given = yield total
            print("given", given.item())
            total = total + given

    def f(x: Tensor) -> Any:
        means = running()
        next(means)
        return [means.send(each) for each in x]

    return f


def delegating(note: Record) -> Any:
    def both(x: Tensor) -> Any:
        yield from rows(x)
        print("between", x.sum().item())
        yield from rows(-x)

    def f(x: Tensor) -> Any:
        return torch.stack(tuple(both(x)))

    return f


@contextlib.contextmanager
def scope(value: float) -> Iterator[float]:
    print("enter", value)
    try:
        yield value * 2
    except ZeroDivisionError:
        print("swallowed", value)
    finally:
        print("exit", value)


def a_manager(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        with scope(x[0].item()) as value:
            y = x * value
            print("inside", y.sum().item())
        return y + 1

    return f


def a_manager_that_swallows(note: Record) -> Any:
    def f(x: Tensor) -> Any:
        y = x + 1
        with scope(x[0].item()), scope(2.0) as value:
            y = y * value
            y = y / (1 // (x.sum().item() > 0))
        return y + 1

    return f


@pytest.mark.parametrize(
    "make",
    [
        one_value,
        all_values,
        a_loop,
        defined_inside,
        sent_to,
        delegating,
        a_manager,
        a_manager_that_swallows,
    ],
)
def test_breaks_in_generators(make: Callable[[Record], Any]) -> None:
    agrees(make, *CALLS)


def test_what_a_library_keeps_in_its_module_stays_that() -> None:
    """Python's generator of random numbers is no object of the capture's, whose methods could not leave a segment."""

    def make(note: Record) -> Any:
        def f(x: Tensor) -> Any:
            random.seed(3)
            y = x * random.random()
            os.environ["STILLGRAPH_TEST"] = str(x[0].item())
            note(float(os.environ["STILLGRAPH_TEST"]))
            return y, os.environ.pop("STILLGRAPH_TEST")

        return f

    static = agrees(make, *CALLS)
    assert "it makes a method that no program can hand on" not in reasons(static)


def test_variables_of_other_functions_around_a_loop_over_a_generator() -> None:
    """Python has made the variable. What an arm writes to it is undone, though the loop there sees it as its own."""

    def make(note: Record) -> Any:
        def f(x: Any) -> Any:
            w = x * 0.5
            print("a")
            if x.sum() > 0:
                for number, row in enumerate(rows(w)):
                    note((number, row.item()))

                def check(a: Any, b: Any, index: int, most: float = 0.5) -> Any:
                    if torch.tanh(w * x.sum())[index % 3] >= w.sum() + 100 or x.sum().item() > most + 100:
                        raise ValueError("too much")
                    return a, b, index, most

                x, w, _, *_ = check(x if not (w > 0).any() else x * 2, w, 1)
            return x, w

        return f

    agrees(make, *CALLS)


def test_a_list_of_what_a_generator_gives_in_a_loop_over_another() -> None:
    """Each path makes its own list: what a segment keeps of it does not make that one from before the path."""

    def make(note: Record) -> Any:
        def positive(x: Tensor) -> Iterator[Tensor]:
            for row in x:
                if row > 0:
                    yield row

        def f(x: Tensor) -> Any:
            found: list[Tensor] = []
            before = found
            for _ in positive(x):
                found = list(positive(x))
            return found, before, found is before

        return f

    agrees(make, *CALLS, (torch.tensor([-1.0, 2.0, -3.0]),))
