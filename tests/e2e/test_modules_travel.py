"""A static module is copied and pickled like any other; what comes out is static and works on its own weights."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.arange(12.0).reshape(4, 3)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.linear(x) if x.sum() > 0 else -self.linear(x)


class Decorated(Counting):
    @sg.to_static(backend="eager")
    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if x.sum() > 0 else -self.linear(x)


def through_torch(module: nn.Module) -> Any:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("travel", [copy.deepcopy, through_torch, lambda module: pickle.loads(pickle.dumps(module))])
@pytest.mark.parametrize("make", [lambda: sg.to_static(Counting(), backend="eager"), Decorated])
def test_a_static_module_travels(make: Callable[[], Any], travel: Callable[[Any], Any]) -> None:
    module = make()
    expected = [module(X), module(-X)]
    other = travel(module)
    assert other.forward.__self__ is other
    assert other.calls == module.calls
    with torch.no_grad():
        module.linear.weight.zero_()  # no weight is shared
    torch.testing.assert_close([other(X), other(-X)], expected)
    assert other.forward.cache_info().programs >= 1
    assert other.state_dict().keys() == module.state_dict().keys()


def test_torch_does_not_log_what_the_exception_says(caplog: pytest.LogCaptureFixture) -> None:
    @sg.to_static(backend="eager")
    def wrong(x: Tensor) -> Tensor:
        return x @ torch.ones(5, 5)

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        wrong(X)
    assert not caplog.records
