"""Flags that a call makes of a number: a graph has plain numbers."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.deploy.saving import opened


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


def masked(x: Tensor) -> Any:
    return int(x) & Mode.WRITE


def on_one_path(x: Tensor) -> Any:
    return int(x) | Mode.WRITE if x > 5 else int(x)


def asked(x: Tensor) -> int:
    return 2 if int(x) & Mode.WRITE else 3


@pytest.mark.parametrize("function", [masked, on_one_path])
def test_a_flag_as_a_result_is_refused(function: Any, tmp_path: Path) -> None:
    with pytest.raises((sg.ExportError, sg.CaptureError)) as raised:
        sg.save(function, tmp_path / "program.pt2", args=(torch.tensor(3),))
    assert raised.value.reason.code in ("SG402", "SG202", "SG203")


@pytest.mark.parametrize("function", [masked, on_one_path])
def test_python_source_makes_flags(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.py", args=(torch.tensor(3),))
    with opened(tmp_path / "program.py", function) as loaded:
        for value in (0, 1, 2, 3, 8, 9):
            x = torch.tensor(value)
            assert repr(loaded(x)) == repr(function(x))
            assert type(loaded(x)).__name__ == type(function(x)).__name__


def test_a_flag_that_is_only_asked(tmp_path: Path) -> None:
    sg.save(asked, tmp_path / "program.pt2", args=(torch.tensor(3),))
    loaded = sg.load(tmp_path / "program.pt2")
    for value in (0, 1, 2, 3):
        assert loaded(torch.tensor(value)) == asked(torch.tensor(value))
