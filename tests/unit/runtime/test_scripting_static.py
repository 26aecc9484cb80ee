"""`torch.jit.script` of what is static already: it compiles the source of the original."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg


def doubled(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x * 2
    return x - 1


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return doubled(self.linear(x))


OPTIONS: list[dict[str, Any]] = [{}, {"full_graph": False}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_function_is_scripted_as_the_original(options: dict[str, Any]) -> None:
    x = torch.randn(2, 3)
    static = sg.to_static(doubled, backend="eager", **options)
    for _ in range(2):
        scripted = torch.jit.script(static)
        for each in (x, -x):
            assert torch.equal(scripted(each), doubled(each))
            assert torch.equal(static(each), doubled(each))


@pytest.mark.parametrize("options", OPTIONS)
def test_of_a_module_it_says_what_to_do(options: dict[str, Any]) -> None:
    layer, x = Layer(), torch.randn(2, 3)
    expected = layer(x)
    static = sg.to_static(layer, backend="eager", **options)
    with pytest.raises(AttributeError, match=r"torch\.jit\.script .*del module.forward"):
        torch.jit.script(static)
    del static.forward
    assert torch.equal(torch.jit.script(static)(x), expected)
