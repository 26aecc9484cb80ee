"""A list of which only the run knows the length, inputs for it, and how a function of it is compared with eager."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg

CALLS = [torch.tensor(each) for each in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [2.0, -1.0, 3.0])]
"""They make it long, empty and in between."""

LONGER_CALLS = [
    torch.tensor(each)
    for each in ([1.0, 2.0, -1.0, 3.0], [-1.0, 2.0, -1.0, -3.0], [4.0, 2.0, 1.0, 3.0], [-1.0, -2.0, -1.0, -3.0])
]
"""They make it of three elements, one, four and none."""


def grown(x: Tensor) -> list[float]:
    """The elements above zero."""
    found = []
    for value in x.tolist():
        if value > 0:
            found.append(value)
    return found


def seen(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    """What a call gives, or raises, and prints."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            result = repr(function(x.clone()))
        except Exception as error:  # of any kind: it is compared
            result = repr(error)
    return result, text.getvalue()


def agree(function: Callable[[Tensor], Any]) -> None:
    """One program does what eager PyTorch does."""
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in LONGER_CALLS:
        assert seen(static, x) == seen(function, x)
    assert len(static.programs) == 1


def agree_in_segments(function: Callable[[Tensor], Any]) -> None:
    """The same without a full graph, be it in several programs."""
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in LONGER_CALLS:
        assert seen(static, x) == seen(function, x)
