"""The way that a call has taken between two programs."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType


@dataclass(frozen=True)
class Passed:
    """An instruction on a way: in which frame, counted from the outermost, and where it has led."""

    position: int
    index: int
    next: int


Done = tuple[CodeType, int]
"""An instruction that Python has carried out."""


@dataclass(frozen=True)
class Ending:
    """How a call has come to its end behind a program.

    Attributes:
        way: the instructions that were carried out.
        done: those that count.
        raised: the one that has raised what the call raises; None where it returned.
    """

    way: tuple[Passed, ...]
    done: tuple[Done, ...]
    raised: Done | None = None
