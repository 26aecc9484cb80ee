"""``resize_`` in a branch: a tensor that has the size already stays what it is, any other is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree, refusal


def in_a_loop(x: Tensor) -> Tensor:
    last = torch.zeros(3)
    while x.norm() < 100:
        last.resize_as_(x).copy_(x)
        last.resize_(3)
        last.resize_((3,)).add_(1)
        x = x * 2 + last
    return last


def to_another(x: Tensor) -> Tensor:
    y = x.clone()
    if x.sum() > 0:
        y.resize_(2)
    return y


@pytest.fixture(autouse=True, params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Any:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


def test_to_the_size_that_there_is() -> None:
    agree(in_a_loop, P, N, torch.tensor([200.0, 0.0, 0.0]))


def test_to_another_size() -> None:
    assert refusal(to_another, P).reason.code == "SG305"
