"""What may be None or one of several values of other kinds: what was asked of it tells which it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import agree

torch.manual_seed(0)
LINEAR, TANH = nn.Linear(3, 3), nn.Tanh()
CALLS = [
    torch.tensor(values)
    for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, 0.1, 0.1], [-0.5, -1.0, 0.1], [9.0, 9.0, -9.5])
]


def doubled(x: Tensor) -> Tensor:
    return x * 2


def optional(x: Tensor) -> Any:
    act: Any = None
    if x.sum() > 3:
        act = torch.relu
    elif x.sum() > 0:
        act = LINEAR
    elif x.sum() > -3:
        act = TANH
    return act


def not_none(x: Tensor) -> Any:
    act = optional(x)
    if act is not None:
        x = act(x)
    return x, act is None


def none_first(x: Tensor) -> Any:
    act = optional(x)
    return x if act is None else act(x)


def by_its_truth(x: Tensor) -> Any:
    act = optional(x)
    if act:
        x = act(x)
    return x


def callable_or_not(x: Tensor) -> Any:
    act = optional(x)
    return act(x) if callable(act) else x


def asked_before(x: Tensor) -> Any:
    act = optional(x)
    there = act is not None
    for _ in range(2):
        if there:
            x = act(x)
    return x


def asked_twice(x: Tensor) -> Any:
    act = optional(x)
    if x.sum() < -5:
        act = "a name"
    if act is None:
        return x
    if isinstance(act, str):
        return x - len(act)
    return act(x)


def containers(x: Tensor) -> Any:
    v: Any = None
    if x.sum() > 3:
        v = [x]
    elif x.sum() > 0:
        v = (x, x + 1)
    elif x.sum() < -5:
        v = {"a": x}
    if v is None:
        return x
    if isinstance(v, dict):
        return v["a"] * 2
    return v[0] + len(v)


def another_name(x: Tensor) -> Any:
    act = optional(x)
    before = act
    if x.max() > 2:
        act = doubled
    if act is not None:
        x = act(x)
    return x if before is None else before(x)


class Block:
    def __init__(self) -> None:
        self.act: Any = None
        self.norm: Any = None

    def run(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = self.norm(x)
        if self.act is not None:
            x = self.act(x)
        return x


def attributes(x: Tensor) -> Any:
    block = Block()
    block.act = optional(x)
    if x.max() > 2:
        block.norm = TANH
    elif x.max() > 0:
        block.norm = doubled
    return block.run(x)


FUNCTIONS = [
    *(not_none, none_first, by_its_truth, callable_or_not, asked_before, asked_twice, containers, another_name),
    attributes,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
