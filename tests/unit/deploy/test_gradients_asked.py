"""A file of code that asks whether its arguments require gradients serves those like the example's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.deploy.saving import opened

X = torch.tensor([1.0, 2.0])


def asks(x: Tensor) -> Tensor:
    return x * 2 if x.requires_grad else x * 3


def tries(x: Tensor) -> tuple[Tensor, str]:
    try:
        x.add_(1)
        told = "done"
    except RuntimeError:
        told = "refused"
    return x * 2, told


def given(requires_grad: bool) -> Tensor:
    return X.clone().requires_grad_(requires_grad)


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize("saved", [True, False])
def test_what_was_asked_is_checked(saved: bool, suffix: str, tmp_path: Path) -> None:
    sg.save(asks, tmp_path / f"program{suffix}", args=(given(saved),))
    with opened(tmp_path / f"program{suffix}", asks) as loaded:
        torch.testing.assert_close(loaded(given(saved)), asks(given(saved)))
        with pytest.raises(ValueError, match=r"x\.requires_grad"):
            loaded(given(not saved))


def test_what_a_handler_is_for_is_checked(tmp_path: Path) -> None:
    sg.save(tries, tmp_path / "program.py", args=(given(True),))
    with opened(tmp_path / "program.py", tries) as loaded:
        assert loaded(given(True))[1] == "refused"
        with pytest.raises(ValueError, match=r"x\.requires_grad"):
            loaded(given(False))


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_other_code_takes_both(suffix: str, tmp_path: Path) -> None:
    def function(x: Tensor) -> Tensor:
        return x * 2

    sg.save(function, tmp_path / f"program{suffix}", args=(given(False),))
    with opened(tmp_path / f"program{suffix}", function) as loaded:
        for each in (True, False):
            torch.testing.assert_close(loaded(given(each)).detach(), X * 2)


def test_the_loaded_check_names_the_argument(tmp_path: Path) -> None:
    sg.save(asks, tmp_path / "program.pt2", args=(X,))
    loaded: Any = sg.load(tmp_path / "program.pt2")
    with pytest.raises(ValueError, match=r"asks was saved for x\.requires_grad = False, not True"):
        loaded(given(True))
