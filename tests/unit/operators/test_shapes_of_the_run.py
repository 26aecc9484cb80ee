"""``torch.broadcast_shapes`` of sizes that only the run knows: each path is as in eager PyTorch, its errors too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

CALLS = tuple((torch.arange(4) < size).float() for size in (3, 1, 2, 0))


def with_one(x: Tensor) -> Any:
    return torch.broadcast_shapes(x[x > 0].shape, (1,))


def of_three(x: Tensor) -> Any:
    n = int(x.sum())
    return torch.zeros(torch.broadcast_shapes((2, 1), n, (n,)))


def may_fail(x: Tensor) -> Any:
    try:
        shape = torch.broadcast_shapes(x[x > 0].shape, (1, 3))
    except RuntimeError as error:
        print(error)
        return x.sum()
    return torch.ones(shape).sum()


def fails(x: Tensor) -> Any:
    return torch.broadcast_shapes(x[x > 0].shape, (3,))


def negative(x: Tensor) -> Any:
    return torch.broadcast_shapes((1,), (int(x.sum()) - 2,))


@pytest.mark.parametrize("function", [with_one, of_three, may_fail, fails, negative], ids=lambda each: each.__name__)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
