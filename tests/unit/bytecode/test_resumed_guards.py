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


# ---- what a segment does not come to
class Noting(nn.Module):
    """Keeps a list that grows with each call, and counts the calls."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.history: list[Any] = []
        self.notes: dict[str, float] = {}
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        y = x.sum()
        if self.kind == "item":
            self.history.append(y.item())
        elif self.kind == "printed":
            print(f"{y.item():.1f}")
            self.history.append(y.item())
        elif self.kind == "text":
            self.history.append(f"{y.item():.2f}")
        elif self.kind == "keyed":
            self.notes[f"call {self.calls}"] = y.item()
        elif self.kind == "length":
            self.history.append(y.detach())
            print(len(self.history))
        self.calls += 1
        return y * 2


KINDS = {"item": 1, "printed": 2, "text": 6, "keyed": 3, "length": 6}
"""By kind, how many programs are enough."""


@pytest.mark.parametrize("kind", KINDS)
def test_lists_that_each_call_makes_longer(kind: str) -> None:
    eager, module = Noting(kind), Noting(kind)
    static = sg.symbolic_trace(module, strict=True)
    for number in range(34):
        x = torch.ones(2) * number
        torch.testing.assert_close(static(x), eager(x))
        assert module.history == eager.history
        assert (module.notes, module.calls) == (eager.notes, eager.calls)
        if number == 24:
            before = module.forward.cache_info().misses
    assert module.forward.plan.gave_up is None
    assert module.forward.cache_info().misses == before
    assert module.forward.cache_info().programs <= KINDS[kind]


LOG: list[float] = []


def logged(x: Tensor) -> Tensor:
    y = x.sum()
    LOG.append(y.item())
    print(len("a"))
    return y * 2 if x.shape[0] < 5 else y * LOG[0]


def test_a_global_list_is_guarded_only_where_it_is_read() -> None:
    static = sg.to_static(logged, full_graph=False, strict=True, backend="eager")
    LOG.clear()
    for number in range(6):
        assert static(torch.ones(2) * number).item() == number * 4
    assert static.cache_info().programs == 2
    for first in (3.0, 4.0):
        LOG[0] = first
        assert static(torch.ones(5)).item() == 5 * first


class Chosen:
    """Reads another attribute in another call."""

    a, b = 2, 3

    def __call__(self, x: Tensor, which: bool) -> Tensor:
        print("chosen")
        return x * self.a if which else x * self.b


def test_another_way_reads_other_names() -> None:
    chosen = Chosen()
    static = sg.to_static(chosen.__call__, full_graph=False, strict=True, backend="eager")
    for a, b in ((2, 3), (4, 3), (4, 5), (2, 5)):
        chosen.a, chosen.b = a, b
        for which in (True, False):
            assert static(torch.ones(1), which).item() == (a if which else b)
