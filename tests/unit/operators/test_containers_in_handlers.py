"""Containers that a ``try`` makes and its handler reads: it finds them where they were made before the error."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

CALLS = tuple((torch.arange(4) < size).float() for size in (3, 1, 2, 0))


def a_shape(x: Tensor) -> Any:
    y = x[x > 0]
    try:
        shape = y.shape
        return y.view(1, -1)[:, 2] + len(shape)
    except IndexError:
        return x * shape[0], type(shape).__name__


def a_tuple(x: Tensor) -> Any:
    y = x[x > 0]
    try:
        shape = (*y.shape, 3)
        return y.view(1, -1)[:, 2] + len(shape)
    except IndexError:
        return x * shape[0] + shape[1]


def a_list(x: Tensor) -> Any:
    y = x[x > 0]
    try:
        held = [y.shape[0], y.sum()]
        return y.view(1, -1)[:, 2] + len(held)
    except IndexError:
        held.append(x.sum())
        return held[0] + held[1] + held[2]


def perhaps_not_made(x: Tensor) -> Any:
    y = x[x > 0]
    try:
        z = y[1]
        shape = y.shape
        return y.view(1, -1)[:, 2] + z + len(shape)
    except IndexError:
        return x * shape[0]


def made_on_one_path(x: Tensor) -> Any:
    y = x[x > 0]
    if x[1] > 0:
        shape = y.shape
    return x * shape[0], type(shape).__name__


def in_a_text(x: Tensor) -> Any:
    y = x[x > 0]
    try:
        shape = y.shape
        return y[1]
    except IndexError:
        print(f"of {shape}")
        return x


@pytest.mark.parametrize(
    "function", [a_shape, a_tuple, a_list, perhaps_not_made, made_on_one_path, in_a_text], ids=lambda f: f.__name__
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
