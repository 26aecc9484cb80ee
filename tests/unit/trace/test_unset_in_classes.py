# ruff: noqa: RUF012 (the functions are about variables that may have no value)
"""Bodies of classes that read a variable of the function which the path taken did not assign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.unset_functions import LESS, ONE, ONES, ZEROS, outcome, static


def in_a_class(x):
    if x.sum() > 0:
        t = x

    class Kept:
        v = t

    return Kept.v


def in_a_class_that_is_caught(x):
    if x.sum() > 0:
        t = 3
    try:

        class Kept:
            t = 1

            class Inner:
                v = [t for _ in range(2)]

    except UnboundLocalError:
        return x
    except NameError as error:
        return x * 2, str(error)
    return Kept.Inner.v


def in_a_class_its_own(x):
    if x.sum() > 0:
        t = x

    class Kept:
        t = 5
        u = t

        def read(self):
            return t

    return Kept().read() * Kept.u


def in_a_class_of_an_arm(x):
    if x.sum() > 0:
        t = x
    y = x * 2
    if x[0] > 0.5:

        class Kept:
            v = t + 1

            def read(self, a=t):
                return a

        y = Kept.v + Kept().read()
    return y


IN_CLASSES = [in_a_class, in_a_class_that_is_caught, in_a_class_its_own, in_a_class_of_an_arm]


@pytest.mark.parametrize("way", ["source", "segments"])
@pytest.mark.parametrize("function", IN_CLASSES, ids=lambda function: function.__name__)
def test_a_class_reads_what_another_function_has(
    function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = static(function, way)
    for x in (ONES, ZEROS, ONE, ONES * 0.2, LESS):
        assert outcome(found, x, capsys) == outcome(function, x, capsys)


@pytest.mark.parametrize("function", IN_CLASSES[:2], ids=lambda function: function.__name__)
def test_python_runs_the_bodies_of_classes_without_source(function: Callable[..., Any]) -> None:
    with through_bytecode(), pytest.raises(sg.CaptureError, match="the body of a class reads 't'"):
        static(function, "bytecode")(ONES)
