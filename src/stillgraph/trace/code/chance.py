"""What gives something else each time it is asked, and leaves no generator moved: the system's chance, and clocks.

A generator without a seed is made of these. Rewritten code has operators for them; code that is not would leave the
program with what the capture happened to get.
"""

from __future__ import annotations

import os
import random
import time
from types import FrameType
from typing import Any

import torch

from stillgraph.core.files import is_our_module, is_package, is_standard_library

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")

CLOCKS: dict[Any, type] = {
    **{getattr(time, name): float for name in (*_CLOCKS, "clock_gettime") if hasattr(time, name)},
    **{getattr(time, f"{name}_ns"): int for name in (*_CLOCKS, "clock_gettime") if hasattr(time, f"{name}_ns")},
}
"""What each gives."""

CHANCE = frozenset(getattr(os, name) for name in ("urandom", "getrandom") if hasattr(os, name))
"""Where Python's modules and numpy's take what nobody can foresee: ``secrets``, ``uuid``, a seed that is not given."""

SEEDED = (random.Random, torch.Generator)
"""Generators whose own code in C does so for a seed that is not given."""


def is_by_chance(frame: FrameType, function: Any) -> bool:
    """Whether code that is not rewritten is about to get what each call would get otherwise.

    Python's own modules read clocks for themselves, as in what waits; those of packages may return what they read.

    Args:
        frame: of that code.
        function: a function or method written in C that it calls.
    """
    if function in CLOCKS:
        return is_package(frame.f_code.co_filename)
    if function not in CHANCE and not _seeds_itself(frame, function):
        return False
    caller: FrameType | None = frame
    while caller is not None and is_standard_library(caller.f_code.co_filename):
        caller = caller.f_back
    return caller is not None and not is_our_module(caller.f_globals.get("__name__", ""))


def _seeds_itself(frame: FrameType, method: Any) -> bool:
    """Whether a method of a generator gives it a seed that nobody has named."""
    if getattr(method, "__name__", "") != "seed" or not isinstance(getattr(method, "__self__", None), SEEDED):
        return False
    is_pythons = frame.f_code is random.Random.seed.__code__
    return frame.f_locals.get("a") is None if is_pythons else isinstance(method.__self__, torch.Generator)
