"""Entries that a path makes in a module's tables: in one arm, in both, in a loop, in a helper, by whichever way."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.front_ends import bytecode

_ = bytecode


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.ones(1))
        self.register_buffer("b2", torch.full((1,), 0.5))
        self.b0 = self.b
        self.w, self.w2 = nn.Parameter(torch.ones(1)), nn.Parameter(torch.full((1,), 0.5))
        self.relu, self.tanh = nn.ReLU(), nn.Tanh()
        self.act: nn.Module = self.relu


class BothArms(Base):
    def forward(self, x):
        if x.sum() > 4:
            self.register_buffer("b", self.b2)
        else:
            self.register_buffer("b", self.b0)
        return x * self.b


class OneArm(Base):
    def forward(self, x):
        if x.sum() > 4:
            self.register_buffer("b", self.b2, persistent=False)
        return x * self.b


class Persistence(Base):
    def forward(self, x):
        self.register_buffer("b", self.b + 1, persistent=bool(x.shape[0] > 1))
        if x.sum() > 4:
            self.register_buffer("b", self.b, persistent=True)
        else:
            self.register_buffer("b", self.b0, persistent=False)
        return x * self.b


class InLoop(Base):
    def forward(self, x):
        while x.sum() > 4:
            self.register_buffer("b", self.b * 2, persistent=False)
            x = x / 2
        return x * self.b


class InHelper(Base):
    def put(self, value):
        self.register_buffer(tensor=value, name="b", persistent=False)

    def forward(self, x):
        if x.sum() > 4:
            self.put(self.b2)
        else:
            self.put(self.b0)
        return x * self.b


class IntoTheTable(Base):
    def forward(self, x):
        if x.sum() > 4:
            self._buffers["b"] = self.b2
        else:
            self._buffers["b"] = self.b0
        return x * self.b


class AParameter(Base):
    def forward(self, x):
        if x.sum() > 4:
            self.register_parameter("w", self.w2)
        return x * self.w


class AModule(Base):
    def forward(self, x):
        if x.sum() > 4:
            self.add_module("act", self.tanh)
        else:
            self.register_module("act", self.relu)
        return self.act(x)


class Mode(Base):
    def forward(self, x):
        if x.sum() > 4:
            self.eval()
        else:
            self.train()
        return x * (2 if self.training else 3)


class Gradients(Base):
    def forward(self, x):
        if x.sum() > 4:
            self.requires_grad_(False)
        else:
            self.requires_grad_(True)
        return x * self.w


KINDS = (BothArms, OneArm, Persistence, InLoop, InHelper, IntoTheTable, AParameter, AModule, Mode, Gradients)


def _told(module: Base, values: tuple[list[float], ...]) -> list[Any]:
    told = []
    for value in values:
        told.append((module(torch.tensor(value)).tolist(), module.b.tolist(), module.b is module.b2))
        told.append((module.w is module.w2, type(module.act).__name__, module.training, module.w.requires_grad))
        told.append(list(module.state_dict()))
    return told


VALUES = ([1.0], [9.0], [1.0], [9.0, 9.0], [1.0, 1.0])


def _expected(kind: type[Base]) -> list[Any]:
    return _told(kind(), VALUES)


def _compare(kind: type[Base], full_graph: bool) -> None:
    assert _told(sg.to_static(kind(), backend="eager", full_graph=full_graph), VALUES) == _expected(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_each_path_makes_its_own_entry(kind: type[Base]) -> None:
    _compare(kind, full_graph=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_does_in_segments(kind: type[Base]) -> None:
    _compare(kind, full_graph=False)


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("kind", [BothArms, OneArm, InLoop])
def test_it_does_through_bytecode(kind: type[Base]) -> None:
    _compare(kind, full_graph=True)


def test_what_is_a_buffer_on_one_path_only_is_refused() -> None:
    class Moves(Base):
        def forward(self, x):
            if x.sum() > 4:
                del self.b
                self.__dict__["b"] = self.b2
            return x * self.b

    static = sg.to_static(Moves(), backend="eager")
    with pytest.raises(sg.CaptureError, match="SG20"):
        static(torch.ones(1))


def test_what_would_change_its_place_in_state_dict_is_refused() -> None:
    class Again(Base):
        def forward(self, x):
            if x.sum() > 4:
                del self.b
                self.register_buffer("b", x[:1] * 2)
            return x * self.b

    static = sg.to_static(Again(), backend="eager")
    with pytest.raises(sg.CaptureError, match="state_dict"):
        static(torch.ones(1))


def test_state_that_only_the_run_knows_is_not_listed() -> None:
    class Lists(OneArm):
        def forward(self, x):
            x = super().forward(x)
            return x + len(self.state_dict())

    static = sg.to_static(Lists(), backend="eager")
    with pytest.raises(sg.CaptureError, match="SG305"):
        static(torch.ones(1))


class InAFile(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.ones(1))
        self.register_buffer("long", torch.full((1,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 4:
            self.register_buffer("b", self.long, persistent=False)
        return x * self.b


class Keeps(InAFile):
    def __init__(self) -> None:
        super().__init__()
        self.original = self.b

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 4:
            self.register_buffer("b", self.long)
        else:
            self.register_buffer("b", self.original)
        return x * self.b


def test_a_file_has_the_entry_of_the_path(tmp_path: Path) -> None:
    eager = InAFile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sg.save(InAFile(), tmp_path / "m.pt2", args=(torch.ones(1),))
        loaded = sg.load(tmp_path / "m.pt2")
    for value in (1.0, 9.0, 1.0):
        assert loaded(torch.tensor([value])).tolist() == eager(torch.tensor([value])).tolist()


@pytest.mark.parametrize("suffix", ["pt2", "py"])
def test_a_file_has_no_two_names_for_a_tensor_of_which_one_is_given_another(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(sg.ExportError, match="another tensor"):
        sg.save(Keeps(), tmp_path / f"m.{suffix}", args=(torch.ones(1),))
