"""Modules that hold one which torch.jit has made, and do not call it: it is no part of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


class Holder(nn.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * 2


def scripted() -> Any:
    return torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))


def traced() -> Any:
    return torch.jit.trace(nn.Linear(3, 3), torch.ones(2, 3))


def frozen() -> Any:
    return torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.Dropout())).eval())


@pytest.mark.parametrize("make", [scripted, traced, frozen])
def test_it_is_captured_once_and_checked(make: Callable[[], Any]) -> None:
    module = Holder(make())
    static = sg.to_static(module, backend="eager", check=2)
    x = torch.randn(2, 3)
    for _ in range(3):
        assert torch.equal(static(x), module.linear(x) * 2)
    static.forward.verify(x)
    assert static.forward.cache_info().programs == 1


def test_called_it_is_refused() -> None:
    class Calling(Holder):
        def forward(self, x: Tensor) -> Tensor:
            return self.linear(self.held(x))

    with pytest.raises(sg.CaptureError) as found:
        sg.to_static(Calling(traced()), backend="eager", check=1)(torch.ones(2, 3))
    assert found.value.reason.code == "SG105"
