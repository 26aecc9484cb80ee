from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.core.diagnostics import InitialisingCall
from tests.unit.state.stories import Static, X, attempt, state, story


@story(programs=2)
def test_hasattr_cache(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            if not hasattr(self, "cache"):
                self.cache = torch.arange(3.0)
            return x + self.cache

    m = static(M())
    return ([m(X * k) for k in (1, -1, 1, 1, -1)], m.cache)


@story(programs=1)
def test_lazy_linear(static: Static) -> Any:
    m = static(nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)))
    o = [m(X), m(X * 2)]
    return (o, state(m))


@story(programs=1)
def test_lazy_bn(static: Static) -> Any:
    m = static(nn.Sequential(nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(2)))
    x = torch.randn(4, 3)
    o = [m(x), m(x * 2)]
    return (o, state(m))


@story(programs=1)
def test_module_in_forward(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = None

        def forward(self, x):
            if self.proj is None:
                self.proj = nn.Linear(x.shape[-1], 2)
            return self.proj(x)

    m = static(M())
    o = [m(X), m(X * 2)]
    return (o, state(m))


@story(programs=1)
def test_module_in_forward_hasattr(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            if not hasattr(self, "proj"):
                self.proj = nn.Linear(x.shape[-1], 2)
            return self.proj(x)

    m = static(M())
    o = [m(X), m(X * 2)]
    return (o, state(m))


@story(programs=1)
def test_add_module_in_forward(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ls = nn.ModuleList()
            self.d = nn.ModuleDict()

        def forward(self, x, k):
            if len(self.ls) < 2:
                self.ls.append(nn.Linear(3, 3))
            if k not in self.d:
                self.d[k] = nn.Linear(3, 3)
            for layer in self.ls:
                x = layer(x)
            return self.d[k](x)

    m = static(M())
    o = [m(X, "a"), m(X * 2, "a"), m(X, "b"), m(X, "a")]
    return (o, state(m))


@story(programs=1)
def test_param_in_forward(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = None
            self.register_parameter("v", None)

        def forward(self, x):
            if self.v is None:
                self.v = nn.Parameter(torch.ones(3))
            if self.w is None:
                self.w = nn.Parameter(torch.ones(x.shape[-1]))
            return (x * self.w * self.v).sum()

    m = static(M())
    o = []
    for _ in range(3):
        y = m(X)
        y.backward()
        o.append(y.detach())
    return (o, state(m))


@story(programs=1)
def test_register_buffer_every(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            self.register_buffer("b", x * 2)
            return self.b

    m = static(M())
    o = [m(X), attempt(m, X * 2), attempt(m, X)]
    return (o, state(m))


@story(programs=1)
def test_register_parameter_fwd(static: Static) -> Any:

    class M(nn.Module):
        def forward(self, x):
            if not hasattr(self, "b"):
                self.register_parameter("b", nn.Parameter(torch.ones(3)))
                self.register_module("l", nn.Linear(3, 3))
                self.add_module("k", nn.Identity())
            return self.l(self.k(self.b) * x)

    m = static(M())
    o = [m(X), m(X * 2), m(X)]
    return (o, state(m))


class Grows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj: nn.Linear | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.proj is None:
            self.proj = nn.Linear(3, 2)
        return self.proj(x) if x.sum() > 0 else self.proj(x) * 2


def test_a_call_that_makes_modules_has_no_program() -> None:
    module = sg.to_static(Grows(), backend="eager")
    module(X)
    assert module.forward.cache_info().programs == 0
    for x in (X, -X):
        module(x)
    assert module.forward.cache_info().programs == 1


def test_a_call_that_makes_modules_is_not_exported() -> None:
    module = Grows()
    with pytest.raises(InitialisingCall, match=r"Grows\.proj is made") as refused:
        sg.export(module, (X,))
    assert refused.value.reason.code == "SG308"
    assert module.proj is None
    module(X)
    assert [each.name for each in sg.export(module, (X,)).parameters] == ["proj_weight", "proj_bias"]
