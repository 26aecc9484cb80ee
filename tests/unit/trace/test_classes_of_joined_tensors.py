"""The class of a tensor that is a parameter or a buffer on one path only: refused where it matters, not guessed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import N, P, agree, refusal


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2) * 2)
        self.shift = nn.Buffer(torch.ones(2) * 3)


HELD: Any = Held()


def chosen(x: Tensor) -> Any:
    w = HELD.weight if x.sum() > 0 else HELD.other
    return isinstance(w, nn.Parameter), type(w).__name__, w * x


def carried(x: Tensor) -> Any:
    w = HELD.weight
    while x.sum() > 100:
        x = x / 2
    return isinstance(w, nn.Parameter), w * x


def either_is_a_tensor(x: Tensor) -> Any:
    w = HELD.weight if x.sum() > 0 else x
    return isinstance(w, Tensor), isinstance(w, (int, Tensor)), w * 2


@pytest.mark.parametrize("function", [chosen, carried, either_is_a_tensor], ids=lambda f: f.__name__)
def test_one_class_on_all_paths(function: Any) -> None:
    agree(function, P, N)


def rebound(x: Tensor) -> Any:
    w = HELD.weight
    if x.sum() > 0:
        w = w * 2
    return isinstance(w, nn.Parameter), w


def in_a_loop(x: Tensor) -> Any:
    w = HELD.weight
    while x.sum() > 1:
        w, x = w * 2, x / 2
    return type(w).__name__, w


def a_buffer(x: Tensor) -> Any:
    b = HELD.shift if x.sum() > 0 else x
    return isinstance(b, nn.Buffer), b


def made_inside(x: Tensor) -> Any:
    w = nn.Parameter(x)
    if x.sum() > 0:
        w = w + 1
    return isinstance(w, nn.Parameter), w


def assigned(x: Tensor) -> Any:
    layer = nn.Linear(2, 1, bias=False)
    w = nn.Parameter(torch.ones(1, 2))
    if x.sum() > 0:
        w = w * 2
    try:
        layer.weight = w
    except TypeError:
        return x
    return layer(x)


@pytest.mark.parametrize("function", [rebound, in_a_loop, a_buffer, made_inside, assigned], ids=lambda f: f.__name__)
def test_another_class_on_one_path_is_refused(function: Any) -> None:
    assert refusal(function, P).reason.code == "SG301"
