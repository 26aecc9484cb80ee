"""What a backend compiles gives no input for a result where eager PyTorch makes a tensor of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def times_one(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.multiply(x, torch.as_tensor(1, dtype=torch.float32)), x


def plus_zeros(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + torch.zeros(3), x


def by_ones(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * torch.ones(3), x


def written_behind(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.multiply(x, torch.as_tensor(1, dtype=torch.float32))
    made[...] = -5.0
    return made, x


def written_in_an_arm(x: Tensor) -> tuple[Tensor, Tensor]:
    made = x * torch.ones(3)
    if x.sum() > 0:
        made.add_(1)
    return made, x


@pytest.mark.parametrize("grad", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("function", [times_one, plus_zeros, by_ones, written_behind, written_in_an_arm])
def test_a_result_is_no_input(function: Callable[[Tensor], tuple[Tensor, Tensor]], grad: bool) -> None:
    static = sg.to_static(function, backend="inductor")
    for _ in range(2):
        x = torch.ones(3, requires_grad=grad) * 1
        made, given = static(x)
        wanted, before = function(torch.ones(3))
        assert torch.equal(made, wanted)
        assert torch.equal(given, before)
        assert given is x
        assert made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_gradients_are_those_of_the_product() -> None:
    found = []
    for function in (by_ones, sg.to_static(by_ones, backend="inductor")):
        x = torch.ones(3, requires_grad=True)
        made, given = function(x)
        ((made * made).sum() + given.sum() * 3).backward()
        found.append(x.grad)
    assert found[0] is not None
    assert torch.equal(found[0], found[1])


def test_results_that_share_memory_keep_their_dtypes() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        made = x * torch.ones(3)
        return made, made.view(torch.int32)

    x = torch.ones(3)
    made, bits = sg.to_static(function, backend="inductor")(x)
    made.zero_()
    assert bits.tolist() == [0, 0, 0]
    assert bits.dtype == torch.int32
    assert x.tolist() == [1, 1, 1]


def test_results_that_share_memory_go_on_to_do_so() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        made = x * torch.ones(3)
        return made, made[1:]

    x = torch.ones(3)
    made, part = sg.to_static(function, backend="inductor")(x)
    part.add_(1)
    assert made.tolist() == [1, 2, 2]
    assert x.tolist() == [1, 1, 1]
