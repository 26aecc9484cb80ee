"""What would be nested deeper than Python's parser takes stands in functions of its own."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import stillgraph as sg
from stillgraph.runtime.native import driver_text
from stillgraph.runtime.native.native import lower
from tests.unit.trace.agreement import N, P, agree, agree_fresh


def branches_and_loops(x: Tensor) -> Any:
    n = 0
    while x.sum() > 1:
        x = x - 0.75
        if x[0] > 0:
            n += 1
            if x[1] > 1:
                continue
            x = x * 0.5
    return x, n


def handlers(x: Tensor) -> Any:
    k = float(x[1])
    try:
        try:
            k = k + 1
            k = 1 / max(0.0, k - 1.5)
        except ZeroDivisionError as error:
            k = k * 3
            raise KeyError("inside") from error
    except KeyError:
        k = k + 7
    return k


def recursions(x: Tensor) -> Any:
    def down(y: Tensor, n: int) -> Any:
        if y.sum() > 1:
            if y[0] > 0.5:
                return down(y / 2, n + 1)
            return down(y - 0.25, n + 10)
        return y, n

    return down(x, 0) if x[0] > 0 else (x, 0)


def kept_for_gradients(x: Tensor) -> Any:
    def body(y: Tensor) -> Tensor:
        if y.sum() > 1:
            with torch.no_grad():
                z = y * 2 if y[0] > 0 else y
            y = y.sin() * z
        return y

    return checkpoint(body, x, use_reentrant=False) if x[0] > 0 else x


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_text, "_MOST_LEVELS", 1)
    monkeypatch.setattr(driver_text, "_MOST_BLOCKS", 0)


@pytest.mark.usefixtures("shallow")
@pytest.mark.parametrize("function", [branches_and_loops, handlers, recursions, kept_for_gradients])
def test_the_functions_do_the_same(function: Callable[..., Any]) -> None:
    calls = [x.clone().requires_grad_(function is not handlers) for x in (P, N, P / 4)]
    static = agree(function, *calls, programs=2)
    for program in static.programs:
        code = lower(program, None).code
        assert "= deeper" in code
        assert max(len(indent) // 4 for indent in re.findall("^ *", code, re.MULTILINE)) <= 4


class Log:
    def __init__(self) -> None:
        self.noted = [0]

    def __call__(self, x: Tensor) -> Any:
        if x[0] > 0:
            self.noted.append(1)
            if x[1] > 1:
                self.noted.append(2)
                if x[2] > 2:
                    return torch.ones(3) + torch.ones(int(x[1]))
        return x


@pytest.mark.usefixtures("shallow")
def test_what_was_done_before_an_operation_fails_stays() -> None:
    agree_fresh(Log, P, N, P * 1.5)


@pytest.mark.usefixtures("shallow")
def test_a_traceback_has_the_users_line_once() -> None:
    static = sg.to_static(Log(), backend="eager", full_graph=True)
    with pytest.raises(RuntimeError) as error:
        static(P)
    lines = [frame.line for frame in traceback.extract_tb(error.value.__traceback__) if frame.filename == __file__]
    assert lines == ["static(P)", "return torch.ones(3) + torch.ones(int(x[1]))"]
