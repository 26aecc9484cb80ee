"""Functions of Python's own with arguments that they do not take, or that a capture has no use for: eager's words."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree

Z = P * 0


def said(call: Callable[[], Any]) -> Any:
    """What a call gives, or which exception it raises, in which words."""
    try:
        return call()
    except Exception as error:  # of any kind: it is compared with that of eager
        return type(error), str(error)


def test_an_argument_for_which_nothing_stands() -> None:
    agree(lambda x: (int("12", base=8), int("ff", 16), x * 2), P, N)
    agree(lambda x: said(lambda: int(x.sum(), 10)), P, N)
    agree(lambda x: said(lambda: int(x[0], base=10)), P, N)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: int(y=3),
        lambda x: float(x[0], 3),
        lambda x: bool(x=1),
        lambda x: len(),
        lambda x: len(value=x),
        lambda x: max(),
        lambda x: sum(),
        lambda x: sum(3),
        lambda x: sum(iterable=x),
        lambda x: any(x, 1),
        lambda x: sorted(x, 3),
        lambda x: enumerate(x, 1, 2),
        lambda x: list(enumerate(x, start=1.5)),
        lambda x: zip(x, foo=2),
        lambda x: isinstance(x),
        lambda x: getattr(x),
        lambda x: next(),
        lambda x: reversed(x, 1),
        lambda x: format(x, 3),
        lambda x: pow(1),
        lambda x: list(1, 2),
        lambda x: math.floor(),
        lambda x: math.trunc(x[0]),
        lambda x: functools.reduce(operator.add),
        lambda x: operator.truth(),
        lambda x: itertools.chain(foo=x),
        lambda x: [].append(),
        lambda x: [].append(1, 2),
        lambda x: [2, 1].sort(1),
        lambda x: [2, 1].sort(foo=1),
        lambda x: "a".join(),
        lambda x: "a".join(3),
    ],
)
def test_python_says_what_is_wrong_with_the_arguments(call: Callable[[Any], Any]) -> None:
    def caught(x: Tensor) -> Any:
        return said(lambda: call(x)), x * 2

    agree(caught, P, N)


@pytest.mark.parametrize("call", [int, float, math.floor, math.sqrt, lambda x: range(x.long())])
@pytest.mark.parametrize("given", [P, torch.empty(0)])
def test_numbers_of_tensors_that_are_none(call: Callable[[Any], Any], given: Tensor) -> None:
    agree(lambda x: said(lambda: call(x)), given)


def test_a_number_of_a_mask_only_the_run_knows() -> None:
    def first(x: Tensor) -> Any:
        try:
            return int(x[x > 2])
        except ValueError:
            return -1

    agree(first, P, N, P + 2)


@pytest.mark.parametrize("item", ["a", None, [1], 1, 2.5, 1j, torch.ones(2), torch.ones(())])
def test_what_is_in_a_tensor(item: Any) -> None:
    agree(lambda x: (said(lambda: item in x), said(lambda: item not in x[0])), P, N, Z)


class Bag:
    """What cannot be iterated."""


@pytest.mark.parametrize("values", [3, Bag(), None])
def test_what_is_not_iterable_behind_a_star(values: Any) -> None:
    agree(lambda x: (said(lambda: [*values]), said(lambda: (*x, *values)), said(lambda: max(1, *values)), x * 2), P, N)


def test_what_is_not_iterable_behind_a_star_through_bytecode() -> None:
    def stars(x: Tensor) -> Any:
        return said(lambda: [*3]), said(lambda: (*x, *3)), said(lambda: max(1, *3)), x * 2

    with through_bytecode():
        agree(stars, P, N)


def test_keywords_of_methods_through_bytecode() -> None:
    once = {"dim": 0}

    def twice(x: Tensor) -> Any:
        try:
            return x.sum(**once, **once)
        except TypeError as error:
            return str(error)

    assert sg.to_static(twice, backend="eager", full_graph=False, strict=True)(P) == twice(P)


def test_what_is_wrong_with_stars_is_said_of_the_function() -> None:
    once: dict[Any, Any] = {"dim": 0}
    layer = torch.nn.ReLU()

    def calls(x: Tensor) -> Any:
        def own(*args: Any, **kwargs: Any) -> Any:
            return args, kwargs

        return [
            said(lambda: own(*3)),
            said(lambda: own(1, *3)),
            said(lambda: own(**3)),
            said(lambda: own(dim=1, **once)),
            said(lambda: own(**once, **once)),
            said(lambda: own(**{1: 2})),
            said(lambda: x.sum(*3)),
            said(lambda: x.sum(**once, **once)),
            said(lambda: len(*3)),
            said(lambda: max(**3)),
            said(lambda: layer(*3)),
            said(lambda: layer(**once, **once)),
            said(lambda: Bag(**3)),
            own(*x, **once),
        ]

    agree(calls, P, N)
    with through_bytecode():
        agree(calls, P, N)


def test_classes_that_calls_make_are_of_the_module_that_calls() -> None:
    def classes(x: Tensor) -> Any:
        pair = collections.namedtuple("pair", "a b")
        other = collections.namedtuple("other", "a", module="elsewhere")
        plain, named = type("plain", (), {"v": 1}), type("named", (), {"__module__": "elsewhere"})
        return [(each.__module__, each.__name__) for each in (pair, other, plain, named)], x * 2

    agree(classes, P, N)
    with through_bytecode():
        agree(classes, P, N)
