"""Which calls of functions written in C `ExecutedCode` tells of, and what it does not look at."""

from __future__ import annotations

import gc
import io
import os
import random
import time
from collections import Counter
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.trace.code.executed_code import Calls, ExecutedCode


def told_of(calling: bool = True, reaching: bool = False) -> list[str]:
    told: list[str] = []

    def tell(frame: FrameType, function: Any) -> None:
        told.append(f"{frame.f_code.co_name} calls {function.__name__}")

    executed = ExecutedCode()
    executed.calling = Calls(frozenset({time.time}), (io.IOBase, random.Random), tell) if calling else None
    executed.reaching = (lambda frame: told.append(f"{frame.f_code.co_name} reaches out")) if reaching else None
    text, generator = io.StringIO(), random.Random(0)
    with executed.watching():
        called(text, generator)
        called(text, generator)
    return told


def called(text: io.StringIO, generator: random.Random) -> None:
    time.time()
    time.perf_counter()
    text.write("of a kind that is meant")
    generator.random()
    [3, 1].sort()
    " ".join(["a", "b"])
    os.chdir(".")


def test_functions_and_kinds_that_are_meant_are_told_of_each_time() -> None:
    assert told_of() == ["called calls time", "called calls write", "called calls random"] * 2


def test_what_changes_the_outside_is_told_of_by_itself() -> None:
    assert told_of(calling=False, reaching=True) == ["called reaches out"] * 2
    assert told_of(calling=False) == []


# ---- what is not watched
class Entry:
    def __init__(self, number: int) -> None:
        self.number = number


TABLE = {number: [Entry(number)] for number in range(10_000)}


def looked_up(x: Tensor) -> Tensor:
    return x * TABLE[3][0].number


def calls_what_reaches_much(x: Tensor) -> Tensor:
    return (looked_up(x) if x.sum() > 0 else x) + 1


@pytest.mark.slow
def test_the_walk_through_what_a_function_reaches_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: Counter[str] = Counter()
    note = ExecutedCode._note

    def count(executed: ExecutedCode, frame: FrameType, event: str, argument: Any) -> None:
        noted[event] += 1
        note(executed, frame, event, argument)

    monkeypatch.setattr(ExecutedCode, "_note", count)
    for given in (torch.ones(2), -torch.ones(2)):
        static = sg.to_static(calls_what_reaches_much, backend="eager")
        assert static(given).tolist() == calls_what_reaches_much(given).tolist()
    assert noted["call"] < len(TABLE), noted


def straight(x: Tensor) -> Tensor:
    for _ in range(20):
        x = x * 1.5
    return x


def branching(x: Tensor) -> Tensor:
    for number in range(20):
        if x.sum() > number:
            x = x + 1
    return x


@pytest.mark.parametrize(("function", "most"), [(straight, 5_000), (branching, 60_000)])
def test_what_is_recorded_is_hardly_watched(monkeypatch: pytest.MonkeyPatch, function: Any, most: int) -> None:
    noted: Counter[str] = Counter()
    note = ExecutedCode._note

    def count(executed: ExecutedCode, frame: FrameType, event: str, argument: Any) -> None:
        noted[event] += 1
        note(executed, frame, event, argument)

    monkeypatch.setattr(ExecutedCode, "_note", count)
    sg.to_static(function, backend="eager")(torch.ones(2))
    assert noted.total() < most, noted


def test_what_is_paused_while_python_is_about_to_call_it_is_still_there() -> None:
    """Python holds no reference to a profile function that it calls, and may collect garbage just before."""
    executed, others = ExecutedCode(), list[Any]()

    def collecting(phase: str, info: dict[str, int]) -> None:
        watching = executed.pause()
        others.extend(executed.pause for _ in range(20))  # these take the place of what is gone
        executed.resume(watching)

    def called(numbers: list[int]) -> list[Any]:
        return list(pair for pair in enumerate(numbers))  # noqa: C400  # a generator's frame is told of, too

    before = gc.get_threshold()
    gc.callbacks.append(collecting)
    try:
        for threshold in range(1, 20):
            gc.set_threshold(threshold)
            others.clear()
            with executed.watching():
                for _ in range(300):
                    assert called([1, 2]) == [(0, 1), (1, 2)]
    finally:
        gc.callbacks.remove(collecting)
        gc.set_threshold(*before)
