"""torch's line search, which minimizers of libraries call on tensors: its conditions are followed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim.lbfgs import _cubic_interpolate

from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree


def interpolated(x: Tensor) -> Any:
    return _cubic_interpolate(x[0], x[1], x[2], x[0] + 2, x[1] * 2, -x[2])  # type: ignore[no-untyped-call]  # torch's


@pytest.fixture(autouse=True, params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Any:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


def test_between_two_points() -> None:
    agree(interpolated, P, N, torch.tensor([1.0, 5.0, 0.1]))
