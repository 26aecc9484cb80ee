"""What a call has written to Python's objects when one of its operations begins: what is left where that one fails."""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

SO_FAR = "so_far"
"""The key of a `SoFar` in a node's ``meta``."""


@dataclass(frozen=True)
class SoFar:
    """The effects until an operation, and where their values are.

    Attributes:
        index: of the effects in `Program.so_far`; None where they are not known.
        values: for each output of theirs, how many regions further out it is known, and the name of its node there.
        left_out: the places of which it is not known what was written there.
    """

    index: int | None
    values: tuple[tuple[int, str], ...]
    left_out: tuple[str, ...] = ()


def so_far_at(node: fx.Node) -> SoFar | None:
    """What is noted at a node; None where nothing is written by then."""
    found: SoFar | None = node.meta.get(SO_FAR)
    return found
