"""Strides of results, and what shares memory: as eager PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx

import stillgraph as sg
from stillgraph.runtime.native.layouts import sharing_difference, stride_difference


def test_strides_are_told_of_dense_tensors_only() -> None:
    x = torch.ones(2, 3)
    assert stride_difference(torch.ones(3, 2).t(), x) == "has the strides (1, 2), in eager (3, 1)"
    assert stride_difference(x.clone(), x) is None
    assert stride_difference(torch.ones(1, 3).t(), torch.ones(3, 1)) is None
    assert stride_difference(x, torch.ones(3, 1).t().expand(2, 3)) is None
    assert stride_difference(torch.ones(0, 3), torch.ones(3, 0).t()) is None


def test_sharing_is_told_by_name() -> None:
    x, y = torch.ones(4), torch.ones(4)
    apart, viewed, same = ([("the result", each), ("args[0]", x)] for each in (y, x[1:], x))
    assert sharing_difference(viewed, viewed) is None
    text = "args[0] does not share memory with the result, as it does in eager"
    assert sharing_difference(apart, viewed) == text
    assert sharing_difference(viewed, apart) == "args[0] shares memory with the result, unlike in eager"
    assert sharing_difference(viewed, same) == "args[0] does not share an object with the result, as it does in eager"


def changing(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    def backend(module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        return lambda *given: [change(each) for each in module(*given)]

    return backend


def viewed(x: Tensor) -> Tensor:
    return x.relu_().view(-1)


def transposed(x: Tensor) -> Tensor:
    return (x * 2).t()


def test_a_backend_that_copies_or_lays_out_anew_is_found() -> None:
    with pytest.raises(sg.CheckError, match=r"args\[0\] does not share memory with the result"):
        sg.to_static(viewed, backend=changing(torch.clone)).verify(torch.ones(2, 3))
    with pytest.raises(sg.CheckError, match=r"the result has the strides \(2, 1\), in eager \(1, 3\)"):
        sg.to_static(transposed, backend=changing(Tensor.contiguous)).verify(torch.ones(2, 3))
    sg.to_static(viewed, backend="eager", check=1)(torch.ones(2, 3))
    sg.to_static(transposed, backend="eager", check=1)(torch.ones(2, 3))
