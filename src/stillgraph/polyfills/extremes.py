"""``max`` and ``min`` of what Python compares part by part: tuples, of which only the run knows how many there are."""

from __future__ import annotations

from typing import Any


def largest(items: list[Any], said: str) -> Any:
    """``max(items)``; ``said`` is what Python says where there are none."""
    if not items:
        raise ValueError(said)
    best = items[0]
    for item in items:
        if item > best:
            best = item
    return best


def smallest(items: list[Any], said: str) -> Any:
    """``min(items)``; ``said`` is what Python says where there are none."""
    if not items:
        raise ValueError(said)
    best = items[0]
    for item in items:
        if item < best:
            best = item
    return best
