"""Parameters of a written file may have the names of the file's own helpers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.deploy.saving import opened

X = torch.tensor([1.0, 2.0, 3.0])


def scaled(x: Tensor, _expect: float = 1.0) -> Tensor:
    return x * _expect


def both(_expect: Tensor, _expect_: Tensor, _expect_value: int) -> Tensor:
    return _expect * _expect_value - _expect_


def unbound(x: Tensor, _bound: Tensor, _Unbound: Tensor) -> Tensor:
    if x.sum() > 0:
        y = _bound
    if x.sum() > -100:
        y = _Unbound
    return y


@pytest.mark.parametrize(("function", "args"), [(scaled, (X, 2.0)), (both, (X, X, 3)), (unbound, (X, X, X * 2))])
def test_names_of_helpers(function: Any, args: tuple[Any, ...], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.py", args=args)
    with opened(tmp_path / "program.py", function) as loaded:
        for sign in (1, -1):
            given = (sign * args[0], *args[1:])
            torch.testing.assert_close(loaded(*given), function(*given))
        with pytest.raises(ValueError, match="the program takes"):
            loaded(X[:2], *args[1:])
