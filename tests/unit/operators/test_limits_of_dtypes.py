"""What classes written in C say of a dtype that is another one on each path: `torch.iinfo`, `torch.finfo`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

CALLS = (torch.tensor([5.0, 1.0]), torch.tensor([-300.0, 1.0]), torch.zeros(2))


def chosen(x: Tensor) -> Any:
    kind = torch.int8 if x.sum() > 3 else torch.int16
    limits = torch.iinfo(kind)
    return x.clamp(limits.min, torch.iinfo(kind).max).to(kind), limits.bits, limits.dtype


def of_whole_numbers(x: Tensor) -> Any:
    y = x.long() if x.any() else x.int()
    return torch.iinfo(y.dtype).bits, torch.iinfo(type=y.dtype).max, y.dtype


def of_fractions(x: Tensor) -> Any:
    y = x.double() if x.sum() > 0 else x
    limits = torch.finfo(y.dtype)
    return y.masked_fill(y < 0, torch.finfo(y.dtype).min), limits.eps, limits.max, limits == torch.finfo(torch.float64)


def of_one_kind_or_the_other(x: Tensor) -> Any:
    kind = torch.int8 if x.sum() > 3 else torch.float16
    return (torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)).max


def of_the_wrong_kind(x: Tensor) -> Any:
    kind = torch.int8 if x.sum() > 3 else torch.float16
    return torch.finfo(kind).max


def of_numpy(x: Tensor) -> Any:
    return np.dtype(np.int8 if x.sum() > 3 else np.int16).itemsize


def of_devices(x: Tensor) -> Any:
    return torch.device("cpu" if x.sum() > 3 else "meta").type


FUNCTIONS = [chosen, of_whole_numbers, of_fractions, of_one_kind_or_the_other, of_numpy, of_devices]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_path_has_its_own(function: Any) -> None:
    agree(function, *CALLS)
    agree(function, *reversed(CALLS))


def test_a_path_on_which_it_fails_is_refused() -> None:
    with pytest.raises(sg.CaptureError, match="SG209"):
        sg.to_static(of_the_wrong_kind, backend="eager")(CALLS[0])
