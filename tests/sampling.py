"""Of what tests are given one after another, the fast suite takes a part; the rest are slow tests."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable
from typing import Any

import pytest


def _parameter(value: Any, fast: bool) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=[] if fast else [pytest.mark.slow])


def few(values: Iterable[Any], every: int = 1, slow: Container[Any] = ()) -> list[Any]:
    """These parameters, one of so many fast, beginning with the first.

    Args:
        values: What the test is given, a tuple as several parameters. Of a product, `every` should have no factor in
            common with the number of the last values: it takes the same ones again and again otherwise.
        every: Of how many one is fast.
        slow: Those that take too long; they do not count.

    """
    turns = itertools.count()
    return [_parameter(value, value not in slow and next(turns) % every == 0) for value in values]


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
