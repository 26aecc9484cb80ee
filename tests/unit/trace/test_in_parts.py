"""Tensors of as many rows as the run says, cut into parts: how many there are is the run's to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg

X = torch.arange(1.0, 6.0)[:, None]
SIGNS = ([1, 1, 1, 1, -1], [1, -1, 1, -1, 1], [-1] * 5, [1] * 5, [-1, 1, -1, -1, -1])
INPUTS = [X * torch.tensor(signs)[:, None] for signs in SIGNS]


def rows(x):
    return x[x[:, 0] > 0]


def sums(x):
    return [part.sum() for part in rows(x).split(3)]


def joined_again(x):
    return torch.cat(rows(x).split(2))


def weighed(x):
    total = 0
    for part in rows(x).split(2):
        total = total + part.sum() * part.shape[0]
    return total


def two_chunks(x):
    first, second = rows(x).chunk(2)
    return first.sum() - second.sum()


FUNCTIONS = [
    *(sums, joined_again, weighed, two_chunks),
    lambda x: torch.split(rows(x), 2),
    lambda x: torch.unbind(rows(x)),
    lambda x: rows(x).chunk(2),
    lambda x: torch.chunk(rows(x), 3, dim=0),
    lambda x: rows(x).tensor_split(2),
    lambda x: torch.tensor_split(rows(x), 3),
    lambda x: (rows(x).unbind(1), rows(x).split([1], dim=1), rows(x).chunk(1, -1)),
]


def outcome(function: Callable[..., Any], x: torch.Tensor) -> str:
    try:
        return repr(function(x))
    except ValueError as error:  # of too few chunks
        return str(error)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_as_in_eager(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in INPUTS:
        assert outcome(static, x) == outcome(function, x)


def test_gradients_go_through_the_parts() -> None:
    static = sg.to_static(weighed, backend="eager")
    for x in INPUTS:
        taken = [x.clone().requires_grad_() for _ in range(2)]
        for function, each in zip((static, weighed), taken):
            result = function(each)
            if isinstance(result, torch.Tensor):
                result.sum().backward()
        assert (taken[0].grad is None) == (taken[1].grad is None)
        assert taken[0].grad is None or torch.equal(taken[0].grad, taken[1].grad)
