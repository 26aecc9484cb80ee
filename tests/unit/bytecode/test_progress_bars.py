"""A library that keeps time, takes locks and prints: tqdm, in functions that are captured in segments."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import torch
from tqdm import tqdm

from tests.unit.bytecode.segmented import CALLS, agrees, reasons

# Bars write themselves after each step, however long that took:
OFTEN: dict[str, Any] = {"mininterval": 0, "miniters": 1}


def over_a_range(bars: dict[str, Any], x: Any) -> Any:
    for i in tqdm(range(3), file=bars["file"], **OFTEN):
        x = x + i
    return x


def over_tensors(bars: dict[str, Any], x: Any) -> Any:
    total = 0
    for row in tqdm([x, x + 1, x + 2], file=bars["file"], desc="rows", **OFTEN):
        total = total + row.sum()
        if total > 3:
            total = total * 2
    return total


def in_a_block(bars: dict[str, Any], x: Any) -> Any:
    with tqdm(total=3, file=bars["file"], **OFTEN) as bar:
        for _ in range(3):
            x = x * 2
            bar.update(1)
    return x


def by_hand(bars: dict[str, Any], x: Any) -> Any:
    bar = tqdm(total=3, file=bars["file"], **OFTEN)
    x = x + 1
    bar.update(1)
    bar.set_postfix(loss=x.sum().item())
    bar.close()
    return x * 2, bar.n


def of_the_caller(bars: dict[str, Any], x: Any) -> Any:
    x = x + 1
    bars["bar"].update(1)
    return x * 2


FUNCTIONS = [over_a_range, over_tensors, in_a_block, by_hand, of_the_caller]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Any) -> None:
    def make(record: Any) -> Any:
        file = io.StringIO()
        bars = {"file": file, "bar": tqdm(total=30, file=file, **OFTEN)}

        def f(x: Any) -> Any:
            value = function(bars, x)
            record((bars["bar"].n, "100%" in file.getvalue()))
            return value

        return f

    agrees(make, *CALLS, settled=3)  # the programs depend on how long steps take
    assert tqdm.get_lock().locks[-1].acquire(blocking=False), "a lock is still taken"
    tqdm.get_lock().locks[-1].release()


@pytest.mark.parametrize("often", [OFTEN, {"mininterval": 1e9}])
def test_a_bar_is_written_as_often_as_in_eager(often: dict[str, Any]) -> None:
    """Also by the first call, in which it is refused that the bar asks what time it is."""

    def make(record: Any) -> Any:
        file = io.StringIO()

        def f(x: Any) -> Any:
            for i in tqdm(range(3), file=file, **often):
                x = x + i
                print(i, file=file)
            record(re.sub(r"\[.*?\] *", "", file.getvalue()))
            return x

        return f

    agrees(make, *CALLS, settled=3)


def test_a_bar_of_the_callers_is_updated_by_one_step() -> None:
    bars = {"bar": tqdm(total=30, file=io.StringIO(), **OFTEN)}
    static = agrees(lambda record: lambda x: of_the_caller(bars, x), (torch.ones(2),), settled=3)
    assert len(reasons(static)) == 2, reasons(static)
