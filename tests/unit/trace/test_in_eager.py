"""What eager PyTorch says of an operation that fails on a path of the run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import P, refusal


def a_product(x: Tensor) -> Tensor:
    return x[None] @ torch.ones(4, 4)


def a_layer(x: Tensor) -> Tensor:
    return torch.nn.functional.linear(x, torch.ones(2, 5))


def an_index(x: Tensor) -> Tensor:
    return x[7]


def joined(x: Tensor) -> Tensor:
    return torch.cat([x[None], x[None, :2]])


@pytest.mark.parametrize("fails", [a_product, a_layer, an_index, joined])
def test_it_is_quoted(fails: Any) -> None:
    with pytest.raises(Exception) as found:  # of any kind
        fails(P)
    said = f"{type(found.value).__name__}: {found.value}"

    def function(x: Tensor) -> Tensor:
        return fails(x) if x.sum() < 0 else x

    error = refusal(function, P)
    assert error.reason.code == "SG209"
    assert said in str(error)


def test_of_sizes_that_are_open_the_capture_says_what_it_can() -> None:
    def function(x: Tensor) -> Tensor:
        return x @ torch.ones(4, 4) if x.sum() < 0 else x

    with pytest.raises(sg.CaptureError, match="the code raises RuntimeError: "):
        sg.to_static(function, input_spec=[sg.InputSpec([None, 3])], backend="eager")(torch.ones(2, 3))


def test_a_draw_that_fails_draws_nothing() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.normal(x[:2], x) if x.sum() < 0 else x

    torch.manual_seed(3)
    before = torch.get_rng_state()
    refusal(function, P)
    assert torch.equal(torch.get_rng_state(), before)
