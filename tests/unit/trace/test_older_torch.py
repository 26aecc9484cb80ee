"""Calls in which torch before 2.13 asks for sizes and numbers of the run, though nothing depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import stillgraph as sg
from tests.unit.trace.agreement import agree

X = torch.linspace(-1, 1, 24).reshape(4, 6)
INPUTS = [X, -X, X.abs(), -X.abs(), X - 0.3]  # with two, two, four, no and one row that is kept


def kept(x: Tensor) -> Tensor:
    return x[x[:, 0] > 0]


def whole_powers(x: Tensor) -> list[Tensor]:
    n = int(kept(x).shape[0] + 1)
    written = x.clone()
    written **= n
    return [x**n, torch.pow(x, exponent=n), n**x, written.pow_(n), (x * 9).int() ** n]


def fractional_powers(x: Tensor) -> list[Tensor]:
    f = x.abs().sum().item()
    return [x.abs() ** f, f**x, (x * 9).int().abs() ** f]


def norms(x: Tensor) -> list[Tensor]:
    y = kept(x)
    return [y.norm(), y.norm(p=1, dim=0), torch.norm(y, 3.0, (0, 1), True), torch.linalg.vector_norm(y, dim=0)]


def quantiles(x: Tensor) -> list[Tensor]:
    return [torch.quantile(x, 0.3), x.nanquantile(0.5, dim=0, keepdim=True), torch.quantile(x.mT, 0.7, -1)]


def stores(x: Tensor) -> list[Tensor]:
    y, out, whole = kept(x), x.clone(), torch.zeros(4, 6, dtype=torch.int32)
    n = y.shape[0]
    out[:n] = y * 2
    out[:n] += 1
    whole[:n].copy_(y * 9)
    whole[:n, 1:] = y[:, 1:] * 7
    return [out, whole]


def products(x: Tensor) -> list[Tensor]:
    y = kept(x).reshape(1, -1, 2, 3).transpose(1, 2)
    whole = x.reshape(1, -1, 2, 3).transpose(1, 2)
    return [y @ y.mT, torch.matmul(whole, y.mT), F.linear(whole, torch.ones(4, 3)), whole[0] @ whole[0].mT]


def stretched(x: Tensor) -> list[Tensor]:
    return list(torch.broadcast_tensors(kept(x), torch.ones(6), torch.ones(1, 1)))


KINDS: list[Callable[[Tensor], Any]] = [
    whole_powers, fractional_powers, norms, quantiles, stores, products, stretched,
]  # fmt: skip


@pytest.mark.parametrize("function", KINDS)
@pytest.mark.parametrize("gradient", [False, True])
def test_one_program_is_for_all(function: Callable[[Tensor], Any], gradient: bool) -> None:
    agree(function, *[(x.clone().requires_grad_(gradient),) for x in INPUTS])


@pytest.mark.parametrize("function", [norms, stores, products, stretched])
def test_open_sizes_stay_open(function: Callable[[Tensor], Any]) -> None:
    calls = [*INPUTS, torch.cat([X, X])[:5]] if function is not stores else INPUTS
    agree(function, *calls, input_spec=[sg.InputSpec([None, 6])])


def test_what_does_not_fit_fails_in_the_run() -> None:  # one row fits
    def wrong(x: Tensor) -> Tensor:
        out = torch.zeros(4, 6)
        out[:2] = kept(x)
        return out

    agree(wrong, *INPUTS)
