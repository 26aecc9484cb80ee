"""Loops that write in place to what they are entered with, and then exchange it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.program.verify import verify
from tests.unit.passes.captured import run

X, ORDER = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 2, 0])


def filled_before(x: Tensor, order: Tensor) -> Any:
    kept = torch.zeros(3, 4)
    kept[:, 0] = x
    seen, step = kept.t().sum(1), 1
    while step < 4 and x.sum() < 30:
        kept[:, step] = x
        kept, x, step = kept[order], x + 2, step + 1
    return kept, seen, x


def read_behind(x: Tensor, order: Tensor) -> Any:
    first = kept = torch.zeros(3, 4)
    step = 0
    while step < 4 and x.sum() < 30:
        kept[:, step] = x
        kept, x, step = kept[order], x + 2, step + 1
    return kept, first


def read_behind_through_a_view(x: Tensor, order: Tensor) -> Any:
    kept = torch.zeros(3, 4)
    view, step = kept[0], 0
    while step < 4 and x.sum() < 30:
        kept[:, step] = x
        kept, x, step = kept[order], x + 2, step + 1
    return kept, view * 1


def read_inside(x: Tensor, order: Tensor) -> Any:
    first = kept = torch.zeros(3, 4)
    step = 0
    while step < 4 and x.sum() < 30:
        kept[:, step] = x
        kept, x, step = kept[order], x + first.sum(), step + 1
    return kept


def of_an_argument(x: Tensor, order: Tensor) -> Any:
    kept, step = x.view(3, 1), 0
    while step < 4 and x.sum() < 30:
        kept[:, 0] = order.float()
        kept, step = kept[order] * 2, step + 1
    return kept


@pytest.mark.parametrize("scale", [1, 3, 20, -1])
def test_what_nobody_else_sees(scale: int) -> None:
    program = pipeline.run(sg.export(filled_before, (X, ORDER)))
    verify(program)
    for ours, theirs in zip(run(program, (X * scale, ORDER)), filled_before(X * scale, ORDER), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("function", [read_behind, read_behind_through_a_view, read_inside, of_an_argument])
def test_what_is_seen_by_another_name_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ExportError, match="in place and then replaces it, while it is used elsewhere too") as error:
        pipeline.run(sg.export(function, (X, ORDER)))
    assert error.value.reason.code == "SG402"
