"""How a tensor lies in memory, where the paths that lead to it leave it in different ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same


def one_arm(x: Tensor) -> Any:
    y = x.expand(2, 6).t()
    if x[0] > 0:
        y = y.contiguous()
    return y, y.stride(), y.is_contiguous(), y.stride(0)


def decided_behind(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    if x.sum() > 0:
        y = y.t().contiguous().t()
    z = y + 1
    return z * (2 if z.is_contiguous() else 3), z.contiguous().stride(), torch.cat([z, z]).is_contiguous()


def in_a_loop(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    while y.sum() < 9:
        y = (y + 1).t().contiguous().t()
    if not y.is_contiguous():
        y = y * 10
    return y, y.stride()


def made_contiguous(x: Tensor) -> Any:
    y = x.reshape(2, 3)
    if x.sum() > 0:
        y = y.t().contiguous().t()
    w = (y * 2).contiguous()
    return w.view(-1), w.stride(), w.is_contiguous(), w.contiguous() is w


def of_a_view(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x[2:]
    else:
        y = x[:4]
    return y.storage_offset(), y


@pytest.mark.parametrize("function", [one_arm, decided_behind, in_a_loop, made_contiguous, of_a_view])
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in (torch.arange(6.0) + 1, -torch.arange(6.0) - 1, torch.zeros(6)):
        expected, actual = function(x), static(x)
        assert_same(expected, actual)
        for one, other in zip(expected, actual, strict=True):
            if isinstance(one, Tensor):
                assert one.stride() == other.stride()
    assert static.cache_info().programs == 1


def test_what_no_path_has_changed_is_known() -> None:
    def function(x: Tensor) -> Any:
        y = x.t() * 2
        if x.sum() > 0:
            z = x + 1
        else:
            z = x - 1
        return y.stride(), y.is_contiguous(), z

    program = sg.export(function, (torch.ones(2, 3),))
    assert "stride" not in str(program)
    assert "is_contiguous" not in str(program)
