# ruff: noqa: F841 (the functions are about variables that may have no value)
"""Variables that the run alone leaves without a value, where segments end: what decides it is Python's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from stillgraph.bytecode.segments.breaks import place_of
from tests.unit.bytecode.segmented import Record, agrees, reasons, segments

X = torch.tensor([1.0, 2.0, 0.0])
FAR = torch.tensor([9.0, 0.0, 0.0])
NEGATIVE = torch.tensor([-1.0, 0.0, -1.0])
CALLS = ((X,), (FAR,), (-X,), (-FAR,), (NEGATIVE,))


def deleted(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            del a
        except NameError:
            note("handled")
        if x.sum() > 1:
            a = x
            h = lambda: a  # noqa: E731
            print("p")
        return x + 1

    return f


def read_by_an_inner_function(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        b = x
        try:
            if x[0] > 0:
                print("p")
                c = x.sum()
            b = (lambda: c)()
        except NameError as error:
            note((type(error), str(error)))
        return b * 2

    return f


def read_by_a_comprehension(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        b = [x]
        try:
            if x[0] > 0:
                print("p")
                c = x.sum()
            b = [c for _ in range(1)]
        except NameError as error:
            note((type(error), str(error)))
        return b[0] * 2

    return f


def set_by_an_inner_function(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        def g() -> None:
            nonlocal a
            if x.sum() > 0:
                a = x * 2

        if x is None:
            a = None
        print("begin")
        g()
        print("mid")
        try:
            return a + 1
        except NameError as error:
            note((type(error), str(error)))
        return x

    return f


def set_by_a_handler(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            y = x[x[0].long()]
        except IndexError:
            t = x - 5
        print("mid")
        return t

    return f


def set_by_either(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        try:
            if x.sum() > 0:
                t = x * 1
            u = t + 1
        except UnboundLocalError:
            t = x - 5
        print("mid")
        return t

    return f


def set_in_a_branch(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        z = x.relu() + x.sum()
        z = z * 2
        if x.sum() > 0:
            t = x * 2
        z = z + 1
        print("mid")
        try:
            return t + z
        except NameError as error:
            note((type(error), str(error)))
        return z

    return f


def set_in_a_loop(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        y = x.abs()
        while y.sum() > 4:
            t = y = y / 2
        print("mid")
        try:
            return t + y
        except NameError as error:
            note((type(error), str(error)))
        return y

    return f


def set_in_one_of_two(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        if x[0] > 0:
            s = x * 2
        else:
            s = x * 3
        if x.sum() > 4:
            t = s * 2
        if x.sum() > 2:
            s = s + 1
        print("mid")
        try:
            return t + s
        except NameError as error:
            note((type(error), str(error)))
        return s

    return f


def not_read_behind(note: Record) -> Any:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 0:
            t = x * 2
        print("mid")
        return x + 1

    return f


@pytest.mark.parametrize(
    "make",
    [
        deleted,
        read_by_an_inner_function,
        read_by_a_comprehension,
        set_by_an_inner_function,
        set_by_a_handler,
        set_by_either,
        set_in_a_branch,
        set_in_a_loop,
        set_in_one_of_two,
        not_read_behind,
    ],
)
def test_as_in_eager_pytorch(make: Any) -> None:
    agrees(make, *CALLS)


def test_only_the_statement_that_decides_is_pythons() -> None:
    static = agrees(set_in_one_of_two, *CALLS)
    found = [(code, index) for code, known in static.plan.breaks.residual.items() for index, why in known.items()
             if "only the run knows whether a variable has a value" in why.text]
    ((code, index),) = found
    place = place_of(code, index)
    assert place.line == code.co_firstlineno + 5, "the second `if`"


def test_what_is_not_read_behind_is_not_handed_on() -> None:
    static = agrees(not_read_behind, *CALLS)
    assert segments(static) <= 2
    assert not any("whether a variable has a value" in each for each in reasons(static))
