"""What an operation on Python's own numbers raises: Python is asked, with the numbers at the ends of each kind."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.program.constants import Known
from stillgraph.trace.values.numbers import StagedNumber, kinds_of

Failures = tuple[Exception, ...]

_WHOLE = (0, 1, -1, 2, -2, 3, -3, *(sys.maxsize, -sys.maxsize, 10**400, -(10**400)))
_FRACTIONS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 3.0, -3.0, 1000.5, -1000.5),
    *(sys.float_info.max, -sys.float_info.max, 5e-324, -5e-324, math.inf, -math.inf, math.nan),
)
"""The last whole numbers are greater than any float; a root of a number below zero is complex."""

_SAMPLES: dict[type, tuple[Any, ...]] = {bool: (False, True), int: _WHOLE, float: _FRACTIONS}
_GROWING = frozenset({math.factorial, math.comb, math.perm})
"""What takes as long as its operands are great."""

_MOST_OPERANDS, _MOST_EXPONENT = 3, 1024


def failures_of(function: Callable[..., Any], operands: Sequence[Any]) -> Failures | None:
    """The exceptions that an operation on numbers may raise; None if that is not known.

    Args:
        function: Python's own.
        operands: numbers, of which some are only known to the run.
    """
    if function in _GROWING or len(operands) > _MOST_OPERANDS:
        return None
    if function is operator.pow and not isinstance(operands[1], StagedNumber) and abs(operands[1]) > _MOST_EXPONENT:
        return None
    kinds = (kinds_of(each) if isinstance(each, StagedNumber) else Known(each) for each in operands)
    return _raised(function, tuple(kinds))


def rounding() -> Failures:
    """The exceptions that making a whole number of a float may raise: it may be infinite, or none."""
    return _raised(int, ((float,),))


def indexing(kind: type[Sequence[Any]]) -> Failures:
    """The exceptions that a whole number as the index of a list or tuple may raise."""
    return _said(kind().__getitem__, [_WHOLE])


@functools.lru_cache(maxsize=1024)
def _raised(function: Callable[..., Any], operands: tuple[tuple[type, ...] | Known, ...]) -> Failures:
    columns = [_samples(each) for each in operands]
    if function is operator.pow:
        columns[1] = tuple(each for each in columns[1] if type(each) is float or abs(each) <= _MOST_EXPONENT)
    return _said(function, columns)


def _said(function: Callable[..., Any], columns: Sequence[Sequence[Any]]) -> Failures:
    found: dict[Any, Exception] = {}
    for numbers in itertools.product(*columns):
        try:
            function(*numbers)
        except Exception as error:  # of any kind: it is what is asked for
            found.setdefault((type(error), repr(error.args)), error.with_traceback(None))
    return tuple(found.values())


def _samples(operand: tuple[type, ...] | Known) -> tuple[Any, ...]:
    if isinstance(operand, Known):
        return (operand.value,)
    return tuple(itertools.chain(*(_SAMPLES[kind] for kind in operand)))
