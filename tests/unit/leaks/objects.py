"""What is alive: counts of objects, and what keeps one of them."""

from __future__ import annotations

import collections
import gc
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

# torch keeps one of each for every kind of call to an operator that it has seen on fake tensors, without bound.
_TORCHS_OWN = frozenset(
    {
        "_DispatchCacheKey",
        "_DispatchCacheValidEntry",
        "_DispatchCacheEntryOutputInfo",
        "TensorMetadata",
        "ShapeEnvSettings",
    }
)


def census() -> collections.Counter[str]:
    """How many objects there are, by the names of their types."""
    gc.collect()
    return collections.Counter(type(each).__name__ for each in gc.get_objects())


def frames() -> int:
    """How many frames are kept by something, beyond those that run."""
    gc.collect()
    return sum(type(each) is types.FrameType for each in gc.get_objects())


def resident() -> int:
    """The process's resident memory in KiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def growth(step: Callable[[int], object], times: int, warm_up: int = 5) -> dict[str, int]:
    """The types of which there is one more for every other step or so, in each of two runs of steps.

    What is made once (an entry of a cache of torch's, a tuple that the collector has not yet looked at) falls into
    one of the runs only; what leaks does so in both.

    Args:
        step: is given the number of the step.
        times: how many steps are in one run.
        warm_up: how many go before.
    """
    for number in range(warm_up):
        step(number)
    counts = [census()]
    for run in range(2):
        for number in range(warm_up + run * times, warm_up + (run + 1) * times):
            step(number)
        counts.append(census())
    more = (counts[1] - counts[0]) & (counts[2] - counts[1])
    return {name: count for name, count in more.items() if count >= times // 2 and name not in _TORCHS_OWN}


def alive(references: Iterable[weakref.ref[Any]]) -> list[str]:
    """What is still there of some objects, after a collection."""
    gc.collect()
    return [type(found).__name__ for reference in references if (found := reference()) is not None]
