"""Orders of tuples, lists and dataclasses in which there are numbers that only the run knows."""

from __future__ import annotations

import dataclasses
import operator
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree

Pair = namedtuple("Pair", "first second")  # as people have it


@dataclasses.dataclass(order=True)
class Version:
    major: Any
    minor: Any = 0
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(order=True)
class Other:
    major: Any


def tuples(compare: Callable[[Any, Any], Any], number: Any) -> Any:
    return compare((1, number, "a"), (1, 6.0, "a"))


def lists(compare: Callable[[Any, Any], Any], number: Any) -> Any:
    return compare([number, [number]], [6.0, [number, 1]])


def named(compare: Callable[[Any, Any], Any], number: Any) -> Any:
    return compare(Pair(number, 1), (6.0, 2))


def classes(compare: Callable[[Any, Any], Any], number: Any) -> Any:
    return compare(Version(1, number, "x"), Version(1, 6.0, "y"))


MEANINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("kind", [tuples, lists, named, classes])
def test_in_the_run(kind: Callable[..., Any]) -> None:
    def compared(x: Tensor) -> Any:
        number = x.sum().item()
        answers = [kind(compare, number) for compare in MEANINGS.values()]
        return x + (1 if answers[0] else 5), answers

    agree(compared, P, N, P * 2)


def test_what_python_knows() -> None:
    agree(lambda x: x + (1 if Version(1, 2) < Version(1, 3) else 5), P)
    agree(lambda x: x + (1 if operator.ge((len(x), 2), (3, 1)) else 5), P)


@pytest.mark.parametrize("other", [3, Other(1)])
def test_what_has_no_order(other: Any) -> None:
    agree(lambda x: x + (1 if Version(1) < other else 5), P)
    agree(lambda x: x + (1 if (x.sum().item(), "a") < (6.0, 3) else 5), P)


def test_tensors_are_left_to_python() -> None:
    with pytest.raises(sg.CaptureError, match="SG301"):
        sg.to_static(lambda x: x + (1 if (x.sum(), 1) < (x.max(), 2) else 5), backend="eager")(P)
