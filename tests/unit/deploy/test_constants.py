"""Files of programs that give one of some constants: the artefact gives the number of an entry, `load` the constant."""

from __future__ import annotations

import collections
import enum
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.description.constants import decode_constant, loaded_class
from tests.cases.compare import assert_same
from tests.cases.harness import python_module


class Mode(enum.Enum):
    A = 1
    B = 2
    C = (3, 4)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


INPUTS = [torch.tensor(values) for values in ([1.0, 2.0], [-1.0, -2.0], [0.1, 0.2], [-9.0, 3.0])]


def of_branches(x: Tensor) -> Any:
    status = "exact" if x.sum() > 0 else "converged"
    mode = Mode.A if x.sum() > 1 else (Mode.B if x.sum() > -4 else Mode.C)
    mixed = "none" if x.sum() > 0 else 3
    dtype = torch.float32 if x.sum() > 0 else torch.float64
    flag = True if x.max() > 1 else "auto"
    maybe = None if x.sum() > 0 else "low"
    return {"y": x * 2, "status": (status, status.upper()), "mode": mode, "mixed": mixed}, dtype, flag, maybe, Mode.C


def of_loops(x: Tensor) -> Any:
    state, n = "start", 0
    while n < 9 and state != "done":
        n += 1
        x = x + 1
        state = "done" if x.sum() > 9 else ("late" if n > 6 else "early")
    return x, state, n


def in_lists(x: Tensor) -> Any:
    names = []
    while x.sum() < 5:
        x = x + 1
        names.append("pos" if x.sum() > 0 else "neg")
    return x, names


def by_value(x: Tensor) -> Any:
    mode = Mode.A if x.sum() > 1 else Mode.B if x.sum() > -4 else Mode.C
    found = Level(int(x.sum().clamp(1, 2)))
    return mode.name, {Level.LOW: x, Level.HIGH: x + 1}[found], found, found.name


@pytest.mark.parametrize("function", [of_branches, of_loops, in_lists, by_value], ids=lambda f: f.__name__)
def test_pt2_gives_the_constants(tmp_path: Path, function: Callable[..., Any]) -> None:
    sg.save(function, tmp_path / "f.pt2", args=(INPUTS[1],))
    loaded = sg.load(tmp_path / "f.pt2")
    for x in INPUTS:
        assert_same(function(x), loaded(x))


@pytest.mark.slow
def test_onnx_gives_the_numbers_of_the_entries(tmp_path: Path) -> None:
    sg.save(of_loops, tmp_path / "f.onnx", args=(INPUTS[0],))
    loaded, session = sg.load(tmp_path / "f.onnx"), onnxruntime.InferenceSession(tmp_path / "f.onnx")
    numbers: dict[int, str] = {}
    for x in INPUTS:
        expected = of_loops(x)
        assert_same(expected, loaded(x))
        number = dict(zip([out.name for out in session.get_outputs()], session.run(None, {"x": x.numpy()})))["state"]
        assert numbers.setdefault(int(number), expected[1]) == expected[1]


def test_python_source_gives_the_constants(tmp_path: Path) -> None:
    sg.save(of_loops, tmp_path / "f.py", args=(INPUTS[0],))
    module = python_module(tmp_path / "f.py")
    for x in INPUTS:
        assert_same(of_loops(x), module.of_loops(x))


def test_a_member_whose_class_is_not_loaded_is_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give(x: Tensor) -> Any:
        return Mode.A if x.sum() > 0 else Mode.C

    sg.save(give, tmp_path / "f.pt2", args=(INPUTS[0],))
    loaded = sg.load(tmp_path / "f.pt2")
    monkeypatch.delattr(f"{__name__}.Mode")
    assert [loaded(x) for x in INPUTS[:2]] == [1, "C"]


def test_looking_a_class_up_asks_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file names what it likes: a module that loads others on demand, or runs code, is not asked."""
    asked: list[str] = []
    lazy = types.ModuleType("lazy")
    monkeypatch.setattr(lazy, "__getattr__", asked.append, raising=False)
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    assert loaded_class("lazy:Anything") is None
    assert loaded_class("collections:OrderedDict") is collections.OrderedDict
    assert loaded_class("os:system") is None
    assert loaded_class("os:path.join") is None
    assert decode_constant({"torch": "onnx"}) is None
    assert not asked
