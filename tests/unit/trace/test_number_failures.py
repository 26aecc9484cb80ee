"""What operations on numbers raise, as Python says when it is asked."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from stillgraph.program.constants import Known
from stillgraph.trace.torch_rules.number_results import MAY_RAISE
from stillgraph.trace.values.number_failures import _raised, failures_of, indexing, rounding

KINDS: tuple[tuple[type, ...], ...] = ((bool,), (int,), (float,))
_GROWING = ("factorial", "comb", "perm")
_OF_SEQUENCES = ("dist", "fsum", "prod", "sumprod", "hypot")
FUNCTIONS: list[tuple[Callable[..., Any], int]] = [
    *((each, 2) for each in sorted(MAY_RAISE - {int, round}, key=lambda each: each.__name__)),
    *((each, 1) for each in (int, round)),
    *((each, 1) for name, each in vars(math).items() if callable(each) and name not in (*_GROWING, *_OF_SEQUENCES)),
    *((getattr(math, name), 2) for name in ("atan2", "fmod", "pow", "remainder", "ldexp", "log", "nextafter", "gcd")),
]


def number(kind: type, draw: random.Random) -> Any:
    """A number of a kind, of any size."""
    if kind is bool:
        return draw.random() < 0.5
    if kind is int:
        return draw.choice([draw.randint(-4, 4), draw.randint(-1000, 1000)])
    return draw.choice([draw.uniform(-2, 2), draw.uniform(-1000, 1000), draw.gauss(0, 1) * 10 ** draw.randint(-99, 99)])


def said(function: Callable[..., Any], numbers: list[Any]) -> tuple[type, str] | None:
    """What a function raises."""
    try:
        function(*numbers)
    except Exception as error:
        return type(error), repr(error.args)
    return None


@pytest.mark.parametrize(("function", "count"), FUNCTIONS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_nothing_else_is_raised(function: Callable[..., Any], count: int) -> None:
    draw = random.Random(0)
    for kinds in itertools.product(KINDS, repeat=count):
        known = {(type(each), repr(each.args)) for each in _raised(function, kinds)}
        numbers = [[number(kind, draw) for (kind,) in kinds] for _ in range(300)]
        assert {said(function, each) for each in numbers} <= {None, *known}


def test_a_known_operand_is_itself() -> None:
    assert [str(each) for each in _raised(operator.truediv, (Known(1), (int,)))] == ["division by zero"]
    assert _raised(operator.truediv, ((float,), Known(2))) == ()
    assert [type(each) for each in _raised(operator.lshift, (Known(0), (int,)))] == [ValueError]


def test_what_grows_is_not_asked() -> None:
    assert failures_of(math.factorial, (3,)) is None
    assert failures_of(operator.pow, (2, 10**6)) is None


def test_rounding_and_indexing() -> None:
    assert {type(each) for each in rounding()} == {ValueError, OverflowError}
    assert "list index out of range" in [str(each) for each in indexing(list)]
    assert "tuple index out of range" in [str(each) for each in indexing(tuple)]
