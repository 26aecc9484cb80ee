"""A text that formats what some paths leave unset, or None: what was read there has a value."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import N, P, agree


def tries(x: Tensor) -> Tensor:
    """As libraries make a matrix positive definite: a number of tries, and what they were in the error."""
    if x.sum() > 5:
        return x
    for i in range(3):
        added = 0.5 * 10**i
        x = x + added
        if x.sum() > 5:
            return x
    raise RuntimeError(f"still too small after {added:.1e} was added")


def only_where_set(x: Tensor) -> Tensor:
    largest = None
    if x.sum() > 0:
        largest = x.max().item()
    if largest is not None:
        print(f"{largest:.2f}")
    return x * 2


@pytest.fixture(autouse=True, params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Any:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


def test_as_in_eager() -> None:
    agree(tries, P, N, 10 * N, 1000 * N)
    agree(only_where_set, P, N, torch.zeros(3))
