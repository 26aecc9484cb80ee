"""Places that a call writes together: swapped, in containers, or taken away on one path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.deploy.saving import opened

X = torch.tensor([1.0, 2.0, 3.0])
CALLS = (X, -X, X, X, -X, X)
flag: Any = 1


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = 1, 2
        self.s, self.t = torch.zeros(3), torch.zeros(3)


class Swaps(Two):
    """The example does not tell the two apart: they begin alike."""

    def forward(self, x: Tensor) -> Tensor:
        self.a, self.b = self.b, self.a
        self.s, self.t = self.t + x, self.s
        y = x * self.a + self.s
        self.s, self.t = self.t, self.s
        return y


class SwapsAlone(Two):
    def forward(self, x: Tensor) -> Tensor:
        y = x + self.s
        self.s.add_(1)
        self.s, self.t = self.t, self.s
        return y


class SwapsOnOnePath(Two):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.a, self.b = self.b, self.a
        else:
            self.s, self.t = self.t + 1, self.s
        return x * self.a + self.s


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize("make", [Swaps, SwapsAlone, SwapsOnOnePath])
def test_attributes_that_are_swapped(make: Callable[[], nn.Module], suffix: str, tmp_path: Path) -> None:
    path, original = tmp_path / f"program{suffix}", make()
    sg.save(make(), path, args=(X,))
    with opened(path, original) as loaded:
        for x in CALLS:
            torch.testing.assert_close(loaded(x), original(x))


def swapping() -> Callable[[Tensor], Tensor]:
    kept = {"k": 1, "j": 2}

    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            kept["k"], kept["j"] = kept["j"], kept["k"]
        return x * kept["k"]

    return function


def counting() -> Callable[[Tensor], Tensor]:
    kept = [1, 2]

    def function(x: Tensor) -> Tensor:
        kept[0] = kept[0] + kept[1] if x.sum() > 0 else kept[0]
        return x * kept[0]

    return function


@pytest.mark.parametrize("make", [swapping, counting])
def test_entries_that_a_call_reads_and_writes(make: Callable[[], Any], tmp_path: Path) -> None:
    path, original = tmp_path / "program.py", make()
    sg.save(make(), path, args=(X,))
    with opened(path, original) as loaded:
        for x in CALLS:
            torch.testing.assert_close(loaded(x), original(x))
    with pytest.raises(sg.ExportError, match="a file cannot keep that"):
        sg.save(make(), tmp_path / "program.pt2", args=(X,))


# ---- taken away
def deletes(x: Tensor) -> Tensor:
    global flag
    if x.sum() > 0:
        del flag
    return x + 1


def sets_and_deletes(x: Tensor) -> Tensor:
    global flag
    flag = 2
    if x.sum() > 0:
        del flag
    return x + 1


def deleting_a_cell() -> Callable[[Tensor], Tensor]:
    held = 1

    def function(x: Tensor) -> Tensor:
        nonlocal held
        held = 2
        if x.sum() > 0:
            del held
        return x + 1

    return function


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize("function", [deletes, sets_and_deletes, deleting_a_cell()])
def test_a_variable_that_is_deleted_on_one_path(function: Any, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="is there afterwards") as raised:
        sg.save(function, tmp_path / f"program{suffix}", args=(-X,))
    assert raised.value.reason.code == "SG402"
