"""The way that a call has taken between two programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Passed:
    """An instruction on a way: in which frame, counted from the outermost, and where it has led."""

    position: int
    index: int
    next: int
