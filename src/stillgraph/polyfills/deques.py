"""Operators on deques of a maximal length of which only the run knows what they hold."""

from __future__ import annotations

import collections
from typing import Any


def added(left: collections.deque[Any], right: collections.deque[Any]) -> collections.deque[Any]:
    """``left + right``."""
    made = left.copy()
    made.extend(right)
    return made


def repeated(left: collections.deque[Any], count: int) -> collections.deque[Any]:
    """``left * count``."""
    made = left.copy()
    made.clear()
    for _ in range(count):
        made.extend(left)
    return made


OPERATORS: dict[str, Any] = {"__add__": added, "__mul__": repeated}
