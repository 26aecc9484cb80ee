"""Files of loops whose condition may fail, and begins with constants: a backward scan, two pointers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

CALLS = [torch.tensor(values) for values in ([0.0, 5.0], [1.5, 0.5], [3.0, 1.0], [2.0, 2.0])]


def backward(x: Tensor) -> int:
    a = [1.0, 2.0]
    i = 2
    while i > 0 and a[i - 1] > x[0]:
        i -= 1
    return i


def forward(x: Tensor) -> int:
    a = [1.0, 2.0, 4.0]
    i = 0
    while i < 3 and a[i] < x[0].item():
        i += 1
    return i


def two_pointers(x: Tensor) -> Any:
    a = [1.0, 2.0, 4.0]
    i, j = 0, 2
    while i < j and (a[i] < x[0] or a[j] > x[1]):
        if a[i] < x[0]:
            i += 1
        else:
            j -= 1
    return i, j


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("function", [backward, forward, two_pointers])
def test_a_file_gives_what_eager_gives(tmp_path: Path, function: Callable[[Tensor], Any], suffix: str) -> None:
    sg.save(function, path := tmp_path / f"scan{suffix}", args=(CALLS[0],))
    loaded = sg.load(path)
    for x in CALLS:
        assert_same(function(x), loaded(x))
