"""Of what tests are given one after another, a suite takes a part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable
from typing import Any

import pytest

_GOLDEN = (math.sqrt(5) - 1) / 2


def is_taken(turn: int, share: int) -> bool:
    """Whether one of many things in a row is taken, of which a suite takes one in so many.

    One of each `share` is taken, not always the same one of them: in a row of pairs all second values come up,
    whatever their number. What is taken is the same each time, and the first thing always is.

    Args:
        turn: The place of the thing in the row, from 0.
        share: Of how many one is taken; 0: none.

    """
    return share > 0 and turn % share == int(turn // share * _GOLDEN % 1 * share)


def _parameter(value: Any, fast: bool) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=[] if fast else [pytest.mark.slow])


def few(values: Iterable[Any], every: int = 1, slow: Container[Any] = ()) -> list[Any]:
    """These parameters, one of so many fast, beginning with the first.

    Args:
        values: What the test is given, a tuple as several parameters.
        every: Of how many one is fast.
        slow: Those that take too long; they do not count.

    """
    turns = itertools.count()
    return [_parameter(value, value not in slow and is_taken(next(turns), every)) for value in values]


def only(values: Iterable[Any], fast: Iterable[Any]) -> list[Any]:
    """These parameters, of which only some are fast.

    Args:
        values: What the test is given, a tuple as several parameters.
        fast: Those of them that are fast.

    """
    chosen = list(fast)
    return [_parameter(value, value in chosen) for value in values]


def crossed(firsts: Iterable[Any], seconds: Iterable[Any]) -> list[Any]:
    """Every pair of one of the first and one of the second values; fast are each of the first with one second in turn.

    Args:
        firsts: Values of the first parameter.
        seconds: Values of the second parameter, no more than of the first if each is to be in a fast test.

    """
    firsts, seconds = list(firsts), list(seconds)
    return only(itertools.product(firsts, seconds), zip(firsts, itertools.cycle(seconds)))
