"""How far a plan may grow, and what is said of one that has grown further: its calls are made in plain PyTorch."""

from __future__ import annotations

import re
import sys
import warnings
from types import FrameType

from stillgraph.runtime import growing
from stillgraph.runtime.cache import ProgramCache

MOST_DROPPED = 8
"""Programs of one part that may be dropped for others, or as many as its cache holds."""

MOST_PARTS = 256
"""Places where a program may begin."""

MOST_VALUES = 3
"""Programs that may be made in the midst of a call for values that differ, before Python takes them."""

MOST_ATTEMPTS = 500
"""Times that a capture may begin anew."""

MOST_FAILURES = 3
"""Captures that may fail."""


def is_beyond(cache: ProgramCache) -> bool:
    """Whether programs were dropped for others again and again."""
    return cache.evictions >= max(MOST_DROPPED, cache.size)


def why_beyond(cache: ProgramCache) -> str:
    """What keeps a part from having a program that lasts, in a sentence; and what to write instead."""
    recent = [*reversed(cache.programs[: growing.CALLS])]
    grows = growing.growing(recent)
    reason = re.sub(r"\.held_\w+\b", "", cache.reasons[0])  # of parcels, which nobody has written
    if grows is not None:
        return f"{reason}. Write to the list without reading it in the same call, or keep a tensor of fixed size"
    hint = "Pass what changes as a tensor, keep it out of the function, or raise cache_size"
    return f"each call needs another program: {reason}. {hint}"


def warn(text: str) -> None:
    """Warn at the line of the user's that has made the call."""
    frame: FrameType | None = sys._getframe(1)
    depth = 2
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("stillgraph."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, RuntimeWarning, stacklevel=depth)
