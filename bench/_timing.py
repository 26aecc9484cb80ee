"""Interleaved timing: all contenders take turns, so that whatever slows the machine down slows all of them."""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

Prepare = Callable[[], Callable[[], object]]
"""Untimed preparation that gives what is to be timed."""


def interleave(contenders: Mapping[str, Prepare], *, rounds: int, warmup: int = 1) -> dict[str, list[float]]:
    """Time each contender once a round, beginning with another one in every round.

    Args:
        contenders: by name, the preparation of what is timed; it runs anew each round.
        rounds: how many rounds are kept.
        warmup: how many rounds before them are discarded.

    Returns:
        The seconds of each contender, round by round.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(warmup + rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            timed = contenders[name]()
            with _collected():
                elapsed = _seconds(timed)
            if turn >= warmup:
                seconds[name].append(elapsed)
    return seconds


def per_call(calls: Mapping[str, Callable[[], object]], *, rounds: int, budget: float = 2e-2) -> dict[str, list[float]]:
    """Time calls that are too short to be timed singly: each turn times as many as fill `budget` seconds.

    Returns:
        The seconds of one call of each, round by round.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    counts = {name: _calls_within(budget, call) for name, call in calls.items()}
    names = list(calls)
    with _collected():
        for turn in range(rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                seconds[name].append(_seconds(calls[name], counts[name]) / counts[name])
    return seconds


def _calls_within(budget: float, call: Callable[[], object]) -> int:
    _seconds(call, 10)
    return max(1, int(budget / _seconds(call)))


def _seconds(timed: Callable[[], object], count: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(count):
        timed()
    return time.perf_counter() - start


@contextmanager
def _collected() -> Iterator[None]:
    """Garbage is collected before what is timed, not inside it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def median(values: list[float]) -> float:
    """The median of the samples."""
    return statistics.median(values)


def median_difference(values: list[float], base: list[float]) -> float:
    """The median of the differences round by round: two samples of a round saw the same machine."""
    return statistics.median(value - below for value, below in zip(values, base, strict=True))


def median_ratio(values: list[float], base: list[float]) -> float:
    """The median of the ratios round by round."""
    return statistics.median(value / below for value, below in zip(values, base, strict=True))


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "cores": os.cpu_count(),
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "transformers", "stillgraph")},
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def write_json(path: Path | None, results: Any) -> None:
    """Write the results and the machine to `path`, if there is one."""
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), "results": results}, indent=2) + "\n", encoding="utf-8")
