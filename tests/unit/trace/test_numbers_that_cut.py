"""Numbers of the run that say into how many parts a tensor is cut, or by which steps a range goes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

TENSORS = [torch.arange(5.0), torch.arange(5.0) - 9]
COUNTS = [torch.tensor(count) for count in (2, 1, 0, -1, 9, 3)]


def by_size(x: Tensor, count: Tensor) -> Any:
    return [part.sum() for part in x.split(int(count))]


def a_filtered_one(x: Tensor, count: Tensor) -> Any:
    return x[x > 0].split(int(count))


def into_chunks(x: Tensor, count: Tensor) -> Any:
    return torch.chunk(x[x > 0], int(count)), len(x.chunk(int(count)))


def into_sections(x: Tensor, count: Tensor) -> Any:
    return x.tensor_split(int(count))


def by_steps(x: Tensor, count: Tensor) -> Any:
    total = 0
    for place in range(9, int(x[0] * 3), int(count)):
        total = total * 2 + place
    return total, list(range(0, 7, int(count))), len(range(int(count), 9, int(count))), range(1, 9, int(count))[0]


FUNCTIONS = [by_size, a_filtered_one, into_chunks, into_sections, by_steps]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_as_in_eager(function: Callable[..., Any]) -> None:
    agree(function, *itertools.product(TENSORS, COUNTS))
