"""Arrays where Python wants one value (``if array``, ``int(array)``): numpy raises for some numbers of elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stillgraph.trace.capture.session import Session
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.arrays.trials import like_array

_OF_ANY_LENGTH = (0, 1, 2)  # of which numpy says different things


def require_one_element(capture: Session, array: StagedArray, convert: Callable[[Any], Any]) -> None:
    """Raise what numpy raises where an array becomes one value of Python's, unless it has one element.

    Where only the run knows how many it has, the run raises.

    Args:
        capture: the session.
        array: the array.
        convert: `bool`, `int` or `float`.

    Raises:
        TypeError, ValueError: as numpy.
    """
    attempts = {length: functools.partial(_attempt, convert, array, length) for length in _OF_ANY_LENGTH}
    told = {length: _told(attempt) for length, attempt in attempts.items()}
    if len(set(told.values())) == 1:
        attempts[1]()
        return
    count = array.tensor.numel()

    def other() -> None:
        branch(capture, count == 0, attempts[0], attempts[2], (), ())

    branch(capture, count == 1, attempts[1], other, (), ())


def _attempt(convert: Callable[[Any], Any], array: StagedArray, length: int) -> None:
    convert(like_array(array, length))


def _told(attempt: Callable[[], None]) -> str:
    """What numpy says; empty where it takes the array."""
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
