"""``_version`` counts the writes to a tensor: a program may do them in another number, and on some paths only."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def on_one_path(x: Tensor) -> Any:
    before = x._version
    if x.sum() > 0:
        x.add_(1)
        x.mul_(2)
    return x._version - before


def in_a_row(x: Tensor) -> Any:
    before = x._version
    x.add_(1)
    x.view(-1).mul_(2)
    return x._version - before


def in_a_loop(x: Tensor) -> Any:
    before, counts = x._version, 0
    while x.sum() < 10:
        counts += x._version - before
        x += 3
    return counts


def of_what_is_made(x: Tensor) -> Any:
    y = x * 2
    if x.sum() > 0:
        y[0] = 1
    return getattr(y, "_version")  # noqa: B009  # as other code asks


@pytest.mark.parametrize("function", [on_one_path, in_a_row, in_a_loop, of_what_is_made])
def test_refused(function: Any) -> None:
    with pytest.raises(sg.CaptureError, match="SG301") as refused:
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert "_version" in str(refused.value)


@pytest.mark.parametrize("function", [on_one_path, in_a_row, in_a_loop, of_what_is_made])
def test_left_to_python(function: Any) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for call in (torch.ones(2), -torch.ones(2), torch.ones(2)):
        assert static(call.clone()) == function(call.clone())


def test_of_what_nobody_has_written_to() -> None:
    def function(x: Tensor) -> Tensor:
        return x * x._version

    static = sg.to_static(function, backend="eager")
    for call in (torch.ones(2), torch.ones(2).add_(1), torch.ones(2)):
        assert torch.equal(static(call), function(call))
