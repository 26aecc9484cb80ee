"""What code reads behind a break is guarded, as if the code had been called there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

SCALE = 1


class Counting:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0
        self.even: list[int] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        print(f"{x.sum().item():.1f}")
        if self.calls % 2 == 0:
            self.even.append(self.calls)
        return x * self.calls


class CountingModule(nn.Module):
    """The same as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.even: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        return Counting.__call__(self, x)  # type: ignore[arg-type]


class Scaling(nn.Module):
    """Reads an attribute behind the break that others change."""

    scale = 1

    def forward(self, x: Tensor) -> Tensor:
        print(f"{x.sum().item():.1f}")
        return x * self.scale


def scaled(x: Tensor) -> Tensor:
    print(f"{x.sum().item():.1f}")
    return x * SCALE


@pytest.mark.parametrize("kind", [Counting, CountingModule])
def test_attributes_that_calls_change(kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    counted = kind()
    static = sg.symbolic_trace(counted if isinstance(counted, nn.Module) else counted.__call__, strict=True)
    assert [static(torch.ones(2)).tolist() for _ in range(4)] == [[k, k] for k in (1, 2, 3, 4)]
    assert counted.even == [2, 4]
    assert capsys.readouterr().out == "2.0\n" * 4


def test_attributes_that_others_change() -> None:
    module = Scaling()
    static = sg.symbolic_trace(module, strict=True)
    found = []
    for scale in (1, 2, 3):
        module.scale = scale
        found.append(static(torch.ones(1)).item())
    assert found == [1, 2, 3]


def test_globals_that_others_change(monkeypatch: pytest.MonkeyPatch) -> None:
    static = sg.symbolic_trace(scaled, strict=True)
    found = []
    for scale in (1, 2, 3):
        monkeypatch.setitem(globals(), "SCALE", scale)
        found.append(static(torch.ones(1)).item())
    assert found == [1, 2, 3]
