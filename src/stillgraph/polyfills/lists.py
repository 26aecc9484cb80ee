"""What Python does in C with lists and sequences of numbers of which only the run knows the length."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any


def set_slice(target: Any, start: Any, stop: Any, values: Any) -> None:
    """``target[start:stop] = values``."""
    values = list(values)
    size = len(target)
    first = 0 if start is None else max(size + start, 0) if start < 0 else min(start, size)
    last = size if stop is None else max(size + stop, 0) if stop < 0 else min(stop, size)
    made = [*target[:first], *values, *target[max(first, last) :]]
    target.clear()
    target.extend(made)


def prod(iterable: Any, /, *, start: Any = 1) -> Any:
    """``math.prod``."""
    for value in iterable:
        start = start * value
    return start


def median(data: Any) -> Any:
    """``statistics.median``."""
    data = sorted(data)
    count = len(data)
    if count == 0:
        raise statistics.StatisticsError("no median for empty data")
    if count % 2 == 1:
        return data[count // 2]
    return (data[count // 2 - 1] + data[count // 2]) / 2


def median_low(data: Any) -> Any:
    """``statistics.median_low``."""
    data = sorted(data)
    if len(data) == 0:
        raise statistics.StatisticsError("no median for empty data")
    return data[(len(data) - 1) // 2]


def median_high(data: Any) -> Any:
    """``statistics.median_high``."""
    data = sorted(data)
    if len(data) == 0:
        raise statistics.StatisticsError("no median for empty data")
    return data[len(data) // 2]


POLYFILLS: dict[Any, Callable[..., Any]] = {
    math.prod: prod,
    statistics.median: median,
    statistics.median_low: median_low,
    statistics.median_high: median_high,
}
"""By Python's own functions."""
