"""What Python does in C with lists of which only the run knows the length, or where it is cut."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from tests.unit.operators.grown import LONGER_CALLS, agree, grown, seen


def multiplied(x: Tensor) -> Any:
    return math.prod(grown(x)), math.prod(x.tolist(), start=2.0), math.prod([2, 3])


def multiplied_in_an_arm(x: Tensor) -> Any:
    return math.prod([x[0], x[1]]) if x.sum() > 0 else math.prod([])


def in_the_middle(x: Tensor) -> Any:
    values = grown(x)
    return statistics.median(values), statistics.median_low(values), statistics.median_high(x.tolist())


def the_end_replaced(x: Tensor) -> Any:
    values = grown(x)
    values[1:] = [9.0]
    values[-1:] = (value for value in (1.0, 2.0))
    values[:0] = [7.0, 8.0]
    values[5:2] = [3.0]
    return values


def replaced_by_itself(x: Tensor) -> Any:
    values = grown(x)
    values[1:] = values
    values[:1] = grown(x)
    return values


def cut_by_the_run(x: Tensor) -> Any:
    values, count = [1, 2, 3, 4], int(x[0])
    values[count:] = [9]
    values[-count:count] = [int(value) for value in grown(x)]
    return values


def tensors_cut_by_the_run(x: Tensor) -> Any:
    values, count = [x, x + 1, x + 2], int(x[0])
    values[count:] = [x * 2]
    return values


def replaced_by_what_is_no_sequence(x: Tensor) -> Any:
    values: Any = grown(x)
    values[1:] = 5
    return values


@pytest.mark.parametrize(
    "function",
    [
        *(multiplied, multiplied_in_an_arm, in_the_middle, the_end_replaced, replaced_by_itself, cut_by_the_run),
        tensors_cut_by_the_run,
    ],
)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function)


def test_what_is_no_sequence() -> None:
    static = sg.to_static(replaced_by_what_is_no_sequence, backend="eager")
    for x in LONGER_CALLS:
        assert seen(static, x) == seen(replaced_by_what_is_no_sequence, x)


def test_a_slice_with_a_step_is_refused() -> None:
    def function(x: Tensor) -> Any:
        values = grown(x)
        values[::2] = [1.0]
        return values

    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(LONGER_CALLS[0])
    assert caught.value.reason.code == "SG210"
