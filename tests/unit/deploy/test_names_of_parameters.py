"""The parameters of a file may have any name that Python allows."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

Y = torch.ones(2)
SOURCE = """
def named(NAME, y):
    if NAME.sum() > 0:
        NAME = NAME + y
    else:
        NAME = NAME - 1
    while NAME.sum() > 10:
        NAME = NAME / 2
    return NAME
"""
FAST = ("X", "torch", "self", "if_")
SLOW = ("Input", "L", "X_1", "W1", "aB", "Δt", "ß", "inf", "device", "lambda_", "_x", "__x", "args", "output", "sum_1")
NAMES = [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


def made(name: str) -> Callable[..., Tensor]:
    text = SOURCE.replace("NAME", name)
    file = f"<a function of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    return space["named"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name(name: str, tmp_path: Path) -> None:
    function = made(name)
    sg.save(function, tmp_path / "named.pt2", args=(Y, Y))
    loaded = sg.load(tmp_path / "named.pt2")
    for x in (Y, -Y, Y * 50):
        torch.testing.assert_close(loaded(x, Y), function(x, Y))
        torch.testing.assert_close(loaded(**{name: x, "y": Y}), function(x, Y))


def test_a_name_that_python_source_needs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="a parameter called 'torch', which is a module that the file needs"):
        sg.save(made("torch"), tmp_path / "named.py", args=(Y, Y))


def test_names_that_differ_by_case(tmp_path: Path) -> None:
    def both(x: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
        if x.sum() > 0:
            x, X = X, x
        return x, X * 2

    sg.save(both, tmp_path / "both.pt2", args=(Y, Y * 3))
    loaded = sg.load(tmp_path / "both.pt2")
    for x in (Y, -Y):
        torch.testing.assert_close(loaded(x, Y * 3), both(x, Y * 3))


def weighed(names: tuple[str, ...]) -> Callable[..., Tensor]:
    """A function that does something else with each parameter."""
    terms = " + ".join(f"{name} * {10 ** i}" for i, name in enumerate(names))
    first = names[0]
    text = f"def weighed({', '.join(names)}):\n    return {terms} if {first}.sum() > 0 else {first} - ({terms})\n"
    file = f"<a function of {names}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    return space["weighed"]


CLASHING: Any = [
    ("input", "Input"),
    ("Lambda", "Self", "Torch"),
    ("input", "input_1"),
    ("input_5", "input", "input_6"),
    ("id", "Id", "ID"),
    ("Δt", "Ωt"),
    ("X", "x", "x_", "x_1"),
    ("max", "min_1", "min", "Max", "max_2"),
]
CLASHING = [*CLASHING[:3], *(pytest.param(names, marks=pytest.mark.slow) for names in CLASHING[3:])]


@pytest.mark.parametrize("names", CLASHING)
@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
def test_names_that_are_one_to_torch(names: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    function = weighed(names)
    args = tuple(torch.full((2,), float(i + 1)) for i in range(len(names)))
    sg.save(function, tmp_path / f"weighed{suffix}", args=args)
    loaded = sg.load(tmp_path / f"weighed{suffix}")
    for sign in (1, -1):
        given = tuple(sign * (i + 3) * each for i, each in enumerate(args))
        torch.testing.assert_close(loaded(*given), function(*given))
        torch.testing.assert_close(loaded(**dict(zip(names, given))), function(*given))


# ---- keys
def test_keys_that_are_tuples_and_texts_of_any_kind(tmp_path: Path) -> None:
    def of_entries(entries: dict[Any, Tensor], x: Tensor) -> Tensor:
        return entries["my key"] + entries[1, (2, "b")] * 2 if x.sum() > 0 else x

    entries = {"my key": Y, 3: Y, (1, (2, "b")): Y}
    sg.save(of_entries, tmp_path / "entries.pt2", args=(entries, Y))
    loaded = sg.load(tmp_path / "entries.pt2")
    for x in (Y, -Y):
        torch.testing.assert_close(loaded(entries, x), of_entries(entries, x))


@pytest.mark.parametrize("suffix", [".pt2", ".onnx", ".py"])
def test_a_dict_keyed_by_tensors_is_refused(suffix: str, tmp_path: Path) -> None:
    def total(entries: dict[Tensor, Tensor]) -> Any:
        return sum(value * 2 for value in entries.values())

    with pytest.raises(sg.ExportError, match="cannot hold"):
        sg.save(total, tmp_path / f"total{suffix}", args=({Y: Y, torch.zeros(2): Y},))


def test_an_entry_under_a_tensor_that_an_arm_writes(tmp_path: Path) -> None:
    def counted(x: Tensor) -> Tensor:
        counts = {x: 1}
        if x.sum() > 0:
            counts[x] = 2
        return counts[x] + x

    sg.save(counted, tmp_path / "counted.pt2", args=(Y,))
    for x in (Y, -Y):
        torch.testing.assert_close(sg.load(tmp_path / "counted.pt2")(x), counted(x))


# ---- attributes
class Decoder(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        self.state = torch.zeros_like(x)
        self.mask = None
        while x.sum() < 4:
            self.state = self.state + x
            if self.mask is None:
                x = x + self.state
        return x


@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
def test_an_attribute_that_becomes_none(suffix: str, tmp_path: Path) -> None:
    sg.save(Decoder(), tmp_path / f"decoder{suffix}", args=(Y / 2,))
    torch.testing.assert_close(sg.load(tmp_path / f"decoder{suffix}")(Y / 2), Decoder()(Y / 2))


def test_a_later_parameter_may_be_called_self(tmp_path: Path) -> None:
    def function(x: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
        return x + 2 * self

    sg.save(function, tmp_path / "f.pt2", args=(torch.ones(2), torch.ones(2)))
    assert torch.equal(sg.load(tmp_path / "f.pt2")(torch.ones(2), self=torch.ones(2)), torch.full((2,), 3.0))
