"""Parameters and buffers that torch's layers make inside a function: of their class, whoever makes them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from tests.unit.trace.agreement import N, P, agree

OUTSIDE = torch.ones(4, 3)


def a_layer(x: Tensor) -> Any:
    return nn.Linear(3, 2).weight


def a_list(x: Tensor) -> Any:
    return list(nn.BatchNorm1d(3).parameters())


def a_dict(x: Tensor) -> Any:
    return dict(nn.Sequential(nn.Linear(3, 2), nn.PReLU()).named_parameters())


def a_state(x: Tensor) -> Any:
    layer = nn.GRU(3, 2)
    return list(layer.parameters()), layer(x.unsqueeze(0))[0]


def frozen(x: Tensor) -> Any:
    return nn.Linear(3, 2).requires_grad_(False).bias


def by_containers(x: Tensor) -> Any:
    return list(nn.ParameterList([torch.ones(3), x * 2])), dict(nn.ParameterDict({"a": torch.ones(2)}))


def of_memory_outside(x: Tensor) -> Any:
    weight = nn.Embedding.from_pretrained(OUTSIDE, freeze=False).weight
    return weight, weight is OUTSIDE


def by_hand(x: Tensor) -> Any:
    p = nn.Parameter(x.sum(0))
    return p, isinstance(p, nn.Parameter), p.requires_grad, p.is_leaf, nn.Parameter(torch.ones(1), requires_grad=False)


def on_paths(x: Tensor) -> Any:
    layer = nn.Linear(3, 2) if x.sum() > 0 else nn.Linear(3, 2, bias=False)
    return layer.weight


def trained(x: Tensor) -> Any:
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layer(x).square().sum().backward()
        optimizer.step()
    return layer.weight, layer.weight.grad


def a_buffer(x: Tensor) -> Any:
    made = nn.Buffer(torch.ones(3))
    return made, isinstance(made, nn.Buffer), made.persistent


@pytest.mark.parametrize(
    "made", [a_layer, a_list, a_dict, a_state, frozen, by_containers, by_hand, on_paths, trained, a_buffer]
)
def test_they_are_of_eagers_class(made: Any) -> None:
    agree(made, P, N, P)


def test_memory_from_outside_is_shared_by_a_new_parameter_in_each_call() -> None:
    static = agree(of_memory_outside, P, P)
    first, second = static(P)[0], static(P)[0]
    assert first is not second
    assert first.data_ptr() == second.data_ptr() == OUTSIDE.data_ptr()


# ---- the conversions of modules: torch swaps fakes in memory, where eager PyTorch sets ``data``
def to_double(x: Tensor) -> Any:
    return list(nn.RNN(3, 2).double().parameters())


def to_what_it_is(x: Tensor) -> Any:
    layer = nn.Linear(3, 2)
    weight = layer.weight
    layer.to("cpu").to(torch.float64)
    return weight is layer.weight, weight


def after_a_gradient(x: Tensor) -> Any:
    layer = nn.Linear(3, 2)
    layer(x).sum().backward()
    layer.double()
    return layer.weight, layer.weight.grad


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        return super()._apply(fn, recurse)


def by_a_method_of_ones_own(x: Tensor) -> Any:
    return Own().half().layer.weight


@pytest.mark.parametrize("converted", [to_double, to_what_it_is, after_a_gradient, by_a_method_of_ones_own])
def test_made_modules_are_converted(converted: Any) -> None:
    agree(converted, P, P)


def test_no_tensor_is_one_that_stands_for_it() -> None:
    def asks(x: Tensor) -> Any:
        return [isinstance(x, FakeTensor), isinstance(x * 2, (FakeTensor, int)), isinstance(x, (FakeTensor, Tensor))]

    agree(asks, P)
