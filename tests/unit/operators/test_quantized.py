"""Quantized tensors, of which torch knows none without data: no program has them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch means to remove them
    GIVEN = torch.quantize_per_tensor(torch.ones(2), 0.1, 10, torch.quint8)

X = torch.tensor([1.0, 2.0])
pytestmark = pytest.mark.filterwarnings("ignore:.*quantize:UserWarning")


def made(x: Tensor) -> Any:
    q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
    return q.dequantize() * 2


def looked_into(x: Tensor) -> Any:
    q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
    if q.int_repr().max() == 255:
        return q.dequantize(), "saturated", q.q_scale()
    return q.dequantize(), q.int_repr(), q.q_zero_point()


def by_channels(x: Tensor) -> Any:
    return torch.quantize_per_channel(x, torch.ones(2), torch.zeros(2), 0, torch.qint8).dequantize()


def by_what_it_holds(x: Tensor) -> Any:
    return torch.quantize_per_tensor_dynamic(x, torch.quint8, False).dequantize()


def from_outside(x: Tensor) -> Any:
    return x + GIVEN.dequantize()


def passed(q: Tensor, x: Tensor) -> Any:
    y = x * 2
    if x.sum() > 0:
        y = y + 1
    return q.dequantize() + y


def passed_by(q: Tensor, x: Tensor) -> Any:
    return x + 1


def returned(q: Tensor) -> Any:
    return q, q.is_quantized, q.dtype, q.shape


CASES: list[tuple[Any, tuple[Tensor, ...]]] = [
    *((function, (X,)) for function in (made, looked_into, by_channels, by_what_it_holds, from_outside)),
    *((function, (GIVEN, X)) for function in (passed, passed_by)),
    (returned, (GIVEN,)),
]


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_refused(function: Any, arguments: tuple[Tensor, ...]) -> None:
    with pytest.raises(sg.CaptureError, match="SG304") as refused:
        sg.to_static(function, backend="eager")(*arguments)
    assert "a quantized tensor" in str(refused.value)


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_left_to_python(function: Any, arguments: tuple[Tensor, ...]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for _ in range(3):
        assert str(static(*arguments)) == str(function(*arguments))
