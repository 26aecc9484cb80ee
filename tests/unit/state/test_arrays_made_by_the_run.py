"""Arrays that the function makes, and that only the run can fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stillgraph as sg
from tests.unit.state.arrays import agree, front_end

__all__ = ["front_end"]


def filled(x: Any) -> Any:
    out = np.zeros(4)
    for index in range(4):
        out[index] = x[index].item() * 2
    return out


def in_one_arm(x: Any) -> Any:
    made = np.zeros(2)
    if x.sum() > 0:
        made += 1
    else:
        made[0] = 5
    return made, x * float(made[0])


def counted(x: Any) -> Any:
    counts = np.zeros(10, dtype=np.int64)
    for value in x:
        counts[int(value.abs()) % 10] += 1
    return counts, counts.sum(), counts.argmax()


def compacted(x: Any) -> Any:
    made, length = np.zeros((5, 2), dtype=np.float32), 0
    for value in x:
        if value > 0:
            made[length] = value.item()
            length += 1
    return made, length


def left_early(x: Any) -> Any:
    made = np.zeros(2)
    for _ in range(3):
        np.add(made, 1, out=made)
        if x.sum() > 5:
            break
        x = x + 1
    return x * float(made[0])


def shared(x: Any) -> Any:
    made = np.zeros(3)
    torch.from_numpy(made).add_(1)
    return x, made


def advantages(x: Any) -> Any:
    made, last, rewards = np.zeros(4, dtype=np.float32), 0.0, x.tolist()
    for index in reversed(range(4)):
        last = rewards[index] + 0.9 * last
        made[index] = last
    return torch.tensor(made), made.mean(), made.std()


def two_names(x: Any) -> Any:
    made = np.ones(3)
    other = made
    if x.sum() > 0:
        other *= 3
    return made, other is made


def masked(x: Any) -> Any:
    mask = np.zeros(4, dtype=bool)
    for index in range(4):
        if x[index] > 0:
            mask[index] = True
    return mask, x[torch.from_numpy(mask)]


def out_of_bounds(x: Any) -> Any:
    made = np.zeros(2)
    made[int(x.abs().sum())] = 1
    return made


def in_two_dimensions(x: Any) -> Any:
    made = np.zeros((2, 3))
    made[0, int(x.abs().sum()) % 3] = x[0].item()
    made[1] = [1, 2, 3]
    made[1, 1:] = x[1].item()
    return made


MADE = (filled, in_one_arm, counted, compacted, left_early, shared, advantages, two_names, masked, out_of_bounds)


@pytest.mark.parametrize("function", [*MADE, in_two_dimensions])
def test_an_array_that_the_run_fills(front_end: None, function: Callable[..., Any]) -> None:
    agree(function, lambda n: ((torch.arange(4.0) + 1) * (1 if n % 2 else -1) + n,), 1)


def test_what_does_not_fit_an_array_is_refused() -> None:
    def function(x: Any) -> Any:
        made = np.zeros(3, dtype=np.int32)
        made[0] = int(x.sum())
        return made

    with pytest.raises(sg.CaptureError, match="SG301"):
        sg.to_static(function, backend="eager")(torch.ones(2))
