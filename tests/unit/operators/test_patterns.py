"""``match`` on values that only the run knows, or that another path has left: each case is tried as in eager."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 2


class Corner(Point):
    pass


def classes(x):
    value = Point(x, 1) if x.sum() > 1 else Corner(x * 2, 3)
    match value:
        case Corner(a, b):
            return a + b
        case Point(a, 1):
            return a - 1
        case Point():
            return x


def by_name(x):
    value = Point(x, x.sum() > 3)
    match value:
        case Point(x=a, y=True):
            return a + 1
        case Point(x=a, y=z):
            return a, z


def one_that_it_lacks(x):
    value = Point(x) if x.sum() > 1 else Corner(x * 2)
    match value:
        case Point(z=_):
            return x * 5
        case Corner(x=a, y=2):
            return a


def kinds_of_a_whole_number(x):
    match int(x.sum()):
        case int() if x[0] > 2:
            return x
        case int(n):
            return x + n


def kinds_of_a_number(x):
    match x.sum().item():
        case int():
            return x
        case float(k) if k > 2:
            return x + k
        case float(0.0):
            return x * 9
        case _:
            return -x


def tuples(x):
    value = (1, x) if x.sum() > 1 else (2, x, x * 2)
    match value:
        case (1, y):
            return y
        case (2, y, z):
            return y + z


def one_of_two(x):
    value = {"kind": "a", "v": x} if x.sum() > 1 else {"kind": "b", "w": x * 2}
    match value:
        case {"kind": "a", "v": y} | {"kind": "b", "w": y} if y[0] > 0:
            return x, y
    return x, value


def stars(x):
    value = [x, x * 2, x * 3] if x.sum() > 1 else [x]
    match value:
        case [first, *middle, last]:
            return first + last, middle
        case [*all_of_it]:
            return all_of_it


def of_unknown_length(x):
    match [v for v in x.tolist() if v > 0]:
        case []:
            return "none"
        case [only]:
            return only
        case [first, *others]:
            return first, others


def perhaps_none(x):
    value = [x] if x.sum() > 1 else None
    match value:
        case [y]:
            return y
        case None:
            return -x


def mappings(x):
    value = {"k": x} if x.sum() > 1 else {"j": x, "z": 1}
    match value:
        case {"k": y}:
            return y
        case {"j": y, **others}:
            return y + len(others)


def nested(x):
    value = {"point": Point((x, 1)), "kind": "a"} if x.sum() > 1 else {"point": Corner((x, 2)), "kind": "b"}
    match value:
        case {"point": Corner((y, n)), "kind": kind} | {"point": Point((y, n)), "kind": "a" as kind}:
            return y * n, kind


def a_tensor_or_a_number(x):
    value = x if x.sum() > 1 else 3
    match value:
        case torch.Tensor():
            return value + 1
        case int(n):
            return x - n


def a_text(x):
    value = "a" if x.sum() > 1 else "b"
    match value:
        case str() as text if text == "a":
            return x
        case str(text):
            return text, x


def names_that_are_left(x):
    y = z = 0
    match (x.sum(), x):
        case (y, z) if y > 3:
            return z
        case (1, z):
            return x
    return y, z


class Counting(collections.defaultdict):
    def get(self, key, default=None):
        return (key, default is None)


def a_mapping_with_a_way_of_its_own(x):
    match Counting(int, a=x):
        case {"b": found}:
            return found, x


FUNCTIONS = [
    a_mapping_with_a_way_of_its_own,
    *(classes, by_name, one_that_it_lacks, kinds_of_a_whole_number, kinds_of_a_number, tuples, one_of_two, stars),
    *(of_unknown_length, perhaps_none, mappings, nested, a_tensor_or_a_number, a_text, names_that_are_left),
]
INPUTS = [torch.tensor(each) for each in ([0.0, 2.0], [1.0, -2.0], [0.0, 0.5], [3.0, 1.0], [0.0, 0.0])]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_as_in_eager(function: Callable[..., Any], full_graph: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for x in INPUTS:
        assert repr(static(x)) == repr(function(x))


class TwoNames:
    __match_args__ = ("a", "a")
    a = 1


def too_many(x):
    match Point(x):
        case Point(_, _, _):
            return x


def too_many_of_a_number(x):
    match int(x.sum()):
        case int(_, _):
            return x


def one_name_twice(x):
    match TwoNames():
        case TwoNames(_, _):
            return x


def no_class(x):
    kind = len
    match x:
        case kind():
            return x


WRONG = [too_many, too_many_of_a_number, one_name_twice, no_class]


@pytest.mark.parametrize("function", WRONG, ids=lambda function: function.__name__)
def test_wrong_patterns_raise_what_python_raises(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError) as expected:
        function(INPUTS[0])
    with pytest.raises(TypeError) as found:
        sg.to_static(function, backend="eager")(INPUTS[0])
    assert str(found.value) == str(expected.value)
