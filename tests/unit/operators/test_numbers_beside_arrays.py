"""Operators on numpy's arrays of the run and Python's numbers of the run: numpy takes these in the array's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, tensor

from tests.unit.trace.agreement import agree, refusal

CALLS = (tensor([3.0, 2.0]), tensor([2.0, 4.0]), tensor([-3.0, 1.0]))


def operators(a: Any, n: Any) -> list[Any]:
    computed = [a + n, n + a, a - n, n - a, a * n, n * a, a / n, n / (a * a + 1)]
    return [*computed, a == n, n != a, a < n, n < a, a <= n, n >= a]


@pytest.mark.parametrize("kind", [int, float, bool])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_operators(dtype: torch.dtype, kind: type) -> None:
    agree(lambda x: operators(x.to(dtype).numpy(), kind(x[0] + 0.25)), *CALLS)


def test_in_place() -> None:
    def function(x: Tensor) -> Any:
        a = x.numpy() + 1
        a *= int(x[0])
        a -= float(x[1])
        return a

    agree(function, *CALLS)


def test_scalars_of_numpys() -> None:
    def function(x: Tensor) -> Any:
        a, n = x.numpy(), int(x[0])
        return a.sum() * n, n / (a.max() + 9), a[0] - n, a.mean() > n, a.shape[0] * a * n

    agree(function, *CALLS)


def test_in_a_loop() -> None:
    def function(x: Tensor) -> Any:
        total, scaled, a = 0.0, x.numpy(), x.numpy()
        for i in range(int(x[0])):
            total += (a * i).sum()
            scaled = scaled * i + 1
        return total, scaled

    agree(function, *CALLS)


def test_a_scalar_from_outside() -> None:
    agree(lambda x: np.float32(2) * int(x[0]), *CALLS)


def test_whole_numbers_in_place_take_no_floats() -> None:
    def function(x: Tensor) -> Any:
        a = x.long().numpy() + 0
        a *= float(x[0])
        return a

    agree(function, CALLS[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.to(torch.int8).numpy() * int(x[0]),
        lambda x: x.numpy() ** int(x[0]),
    ],
    ids=["of few bits", "a power"],
)
def test_refused(function: Any) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG301"
