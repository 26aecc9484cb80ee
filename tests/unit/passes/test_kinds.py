"""Numbers of one kind on one path and of another on another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.archive import load
from stillgraph.passes.numbers.kinds import kinds_given
from tests.unit.deploy.saving import save

X = torch.ones(2)


def of_a_branch(x: Tensor) -> Any:
    n = 1
    if x.sum() > 0:
        n = 2.5
    return x * 1, n


def of_a_loop(x: Tensor) -> Any:
    n = 1
    while x.sum() < 3:
        x = x + 1
        n = n + 0.5
    return x * 1, n


def computed_with(x: Tensor) -> Any:
    n = 1
    if x.sum() > 0:
        n = 2.5
    return x * 1, n * 2


def of_one_kind(x: Tensor) -> Any:
    n = 1
    if x.sum() > 0:
        n = 2
    return x * 1, n / 2


@pytest.mark.parametrize(
    ("function", "kinds"),
    [(of_a_branch, {int, float}), (of_a_loop, {int, float}), (computed_with, {int, float}), (of_one_kind, {float})],
)
def test_the_kinds_of_a_result(function: Callable[..., Any], kinds: set[type]) -> None:
    tensor, number = kinds_given(sg.export(function, (X,)).graph)
    assert not tensor
    assert number == kinds


def test_a_saved_program_tells_the_type_of_a_number(tmp_path: Path) -> None:
    save(of_a_branch, tmp_path / "mixed.pt2", (X,))
    loaded = load(tmp_path / "mixed.pt2")
    assert [type(loaded(x)[1]) for x in (X, -X)] == [type(of_a_branch(x)[1]) for x in (X, -X)] == [float, int]
    assert loaded.notes == ()
    save(of_one_kind, tmp_path / "one.pt2", (X,))
    assert not load(tmp_path / "one.pt2").notes
