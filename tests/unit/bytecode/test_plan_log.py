"""The log of what becomes of a function without a full graph."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.program.constants import MOST_ENTRIES
from tests.unit.bytecode.segmented import X, to_partial


def looped(x: Any, names: list[str]) -> Any:
    for i in range(3):
        x = x + len(names[int(x.sum()) % 3])
        x = x * i
    return x


FIRST = looped.__code__.co_firstlineno


def test_what_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "stillgraph.plan")
    static = to_partial(looped)
    names = ["a", "bb", "ccc", *map(str, range(MOST_ENTRIES))]  # more than a program has in a table
    for _ in range(3):
        static(X, names)
    told = [(each.event, each.data) for each in caplog.records if each.name == "stillgraph.plan"]
    events = [event for event, _ in told]
    broken = [data for event, data in told if event == "break"]
    assert [(each["file"], each["line"]) for each in broken] == [(__file__, FIRST + 2), (__file__, FIRST + 1)]
    assert "only the run knows" in broken[0]["reason"]
    assert events[:4] == ["break", "restart", "loop", "restart"]
    assert [data["line"] for event, data in told if event == "loop"] == [FIRST + 1]
    assert events.count("segment") == len(static.plan.parts)
    assert [data["at"] for event, data in told if event == "linked"] == [f"{__file__}:{FIRST + k}" for k in (2, 1)]
    assert events.count("route") == 2
    text = next(each.getMessage() for each in caplog.records if each.event == "restart")
    assert text.startswith(f"a segment of looped is captured anew, for looped breaks at {__file__}:{FIRST + 2}: ")
    count = len(told)
    static(X, names)
    assert len([each for each in caplog.records if each.name == "stillgraph.plan"]) == count


def test_that_a_function_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "stillgraph.plan")

    def f(x: Any) -> Any:
        return x * 2

    static = to_partial(f, cache_size=1, dynamic=False)
    calls = [torch.ones(size) for size in range(1, 12)]
    with pytest.warns(RuntimeWarning, match="called in plain PyTorch from now on"):
        list(map(static, calls))
    (record,) = [each for each in caplog.records if each.event == "fallback"]
    assert record.data["function"].endswith("f")
    assert "x.shape[0] should be " in record.data["why"]


def test_a_program_that_sets_up_logging_for_itself_hears_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # of the root logger, as `logging.basicConfig(level=logging.INFO)` does
    static = sg.to_static(lambda x: x * 2, full_graph=False, strict=True, backend="eager")
    static(torch.ones(2))
    assert not caplog.records


def test_an_explanation_at_a_prompt_is_one_line() -> None:
    static = sg.to_static(lambda x: (print(end=""), x * 2)[1], full_graph=False, strict=True, backend="eager")
    static(torch.ones(2))
    told = repr(static.explain())
    assert "2 subgraphs, 1 breaks" in told
    assert "\n" not in told
