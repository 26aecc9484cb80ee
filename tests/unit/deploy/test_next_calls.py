"""What a file was made for holds at each of its calls, or the file says so, or it is refused at the save."""

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
CALLS = (X, X * 2, -X, X, X)


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h0, self.h1, self.h2, self.n = 2, 5, 7, 0
        self.h, self.first = torch.ones(3), torch.zeros(3)
        self.function: Any = torch.relu


class Named(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * getattr(self, f"h{self.n}")
        self.n = 1
        return y


class NamesWhatItSets(State):
    def forward(self, x: Tensor) -> Tensor:
        setattr(self, f"h{self.n}", 9)
        self.n = self.n + 1
        return x * self.h0 + self.h1


class Text(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2 if str(self.n) == "0" else x
        self.n += 1
        return y


class Key(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * {0: 3, 1: 4}.get(self.n, 9)
        self.n += 1
        return y


class Function(State):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.function(x)
        self.function = torch.neg
        return y


class OneAtFirst(State):
    def __init__(self) -> None:
        super().__init__()
        self.first = self.h

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.h is self.first else x + self.h
        self.h = y * 1
        return y


class Tied(OneAtFirst):
    """Two states that begin as one tensor."""

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.h - 2 * self.first
        self.h = y * 2
        self.first = y * 3
        return y


class Joins(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 5 if self.h is self.first else x + self.h
        self.h = self.first
        return y


class JoinsOnOnePath(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 5 if self.h is self.first else x + self.h
        if x.sum() > 0:
            self.h = self.first
        else:
            self.h = x * 1
        return y


class GivesBoth(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 5 if self.h is self.first else x + self.h
        self.h = self.first = x + 1
        return y


class Remembers(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 5 if x is self.h else x + 1
        self.h = x
        return y


class Keyed(State):
    def forward(self, x: Tensor) -> Tensor:
        y = x * {self.first: 2}.get(self.h, 3)
        self.h = self.first
        return y


class Alternates(State):
    """Objects that lead to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.current = NODES[0]

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.current.value
        if x.sum() > 0:
            self.current = self.current.next
        return y


class Node:
    def __init__(self, value: int) -> None:
        self.value = value
        self.next: Any = None


NODES = [Node(1), Node(2)]
NODES[0].next, NODES[1].next = NODES[1], NODES[0]


class Apart(State):
    """None of its calls leaves one object in two places."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 5 if self.h is self.first else x + self.h
        self.h = x * 1 if x.sum() > 0 else x * 2
        return y


class InPlace(State):
    def forward(self, x: Tensor) -> Tensor:
        self.h.mul_(0.5).add_(x)
        self.first = self.first + self.h
        return self.h + self.first


class WritesFirst(State):
    def forward(self, x: Tensor) -> Tensor:
        self.n = 3
        self.function = torch.neg
        return x * self.n


class Shared:
    mode = "a"
    count = 0


def of_a_class(x: Tensor) -> Tensor:
    y = x + 1 if Shared.mode == "a" else x - 1
    Shared.mode = "b"
    return y


def by_a_name_of_a_class(x: Tensor) -> Tensor:
    y = x * {"count0": 2, "count1": 3}.get(f"count{Shared.count}", 4)
    Shared.count += 1
    return y


@pytest.fixture(autouse=True)
def _as_it_was() -> None:
    Shared.mode, Shared.count = "a", 0


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except ValueError as error:
        return error


def check(make: Callable[[], Any], path: Path) -> str:
    """Save, call, and compare: ``refused``, ``told`` at a call, or ``right``."""
    try:
        sg.save(make(), path, args=(X,))
    except sg.ExportError:
        return "refused"
    original = make()
    with opened(path, original) as loaded:
        for x in CALLS:
            found = outcome(loaded, x)
            if isinstance(found, ValueError):
                assert "the program was made for" in str(found)
                return "told"
            torch.testing.assert_close(found, original(x))
    return "right"


CHANGING = [
    (Named, "refused", "told"),
    (NamesWhatItSets, "refused", "told"),
    (Text, "refused", "right"),
    (Key, "right", "right"),
    (Function, "refused", "refused"),
    (OneAtFirst, "refused", "refused"),
    (Tied, "refused", "refused"),
    (Joins, "refused", "told"),
    (JoinsOnOnePath, "refused", "told"),
    (GivesBoth, "refused", "told"),
    (Remembers, "refused", "told"),
    (Keyed, "refused", "refused"),
    (Alternates, "refused", "refused"),
    (Apart, "right", "right"),
    (InPlace, "right", "right"),
    (WritesFirst, "right", "right"),
    (lambda: of_a_class, "refused", "told"),
    (lambda: by_a_name_of_a_class, "refused", "right"),
]


@pytest.mark.parametrize(("make", "exported", "written"), CHANGING)
def test_what_a_call_changes(make: Any, exported: str, written: str, tmp_path: Path) -> None:
    assert check(make, tmp_path / "program.pt2") == exported
    Shared.mode, Shared.count = "a", 0
    assert check(make, tmp_path / "program.py") == written


# ---- several entries
class Pair(State):
    def step(self, x: Tensor) -> Tensor:
        self.n = self.n + 1
        return x

    def read(self, x: Tensor) -> Tensor:
        return x * getattr(self, f"h{self.n}")

    def total(self, x: Tensor) -> Tensor:
        return x + self.n


def test_what_another_entry_was_captured_for(tmp_path: Path) -> None:
    pair = Pair()
    args = {"step": (X,), "read": (X,)}
    with pytest.raises(sg.ExportError, match=r"'read' is captured for one value of args\[0\].n, which 'step' writes"):
        sg.save({"step": pair.step, "read": pair.read}, tmp_path / "pair.pt2", args=args)


# ---- what is compared by `is`
D = 1.5


def by_identity(x: Tensor, k: float) -> Tensor:
    return x * 2 if k is D else x * 3


def by_identity_and_writes(x: Tensor, k: float) -> Tensor:
    Shared.count = 5
    return x * 2 if k is D else x * 3


def of_two(x: Tensor, k: float, other: float) -> Tensor:
    return x * 2 if k is other else x * 3


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize("function", [by_identity, by_identity_and_writes])
@pytest.mark.parametrize("k", [D, float("1.5")])
def test_a_number_that_is_the_very_object(function: Any, k: float, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="the very object that is found elsewhere") as raised:
        sg.save(function, tmp_path / f"program{suffix}", args=(X, k))
    assert raised.value.reason.code == "SG402"


def test_two_arguments_are_compared_at_the_call(tmp_path: Path) -> None:
    sg.save(of_two, tmp_path / "program.pt2", args=(X, D, D))
    loaded = sg.load(tmp_path / "program.pt2")
    torch.testing.assert_close(loaded(X, D, D), X * 2)
    with pytest.raises(ValueError, match="k and other being one object"):
        loaded(X, D, float("1.5"))


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 + self.weight


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_an_argument_that_is_a_weight(suffix: str, tmp_path: Path) -> None:
    module = Weighted()
    with pytest.raises(sg.ExportError, match="the very object that is found elsewhere"):
        sg.save(module, tmp_path / f"program{suffix}", args=(module.weight,))
