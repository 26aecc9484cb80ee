"""Files of programs that index a tensor by whole numbers of the run, and write to it in a loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

CALLS = [torch.tensor(values) for values in ([0.0, 5.0, 1.0], [1.5, 0.5, -1.0], [3.0, 1.0, 7.0])]


def labels(x: Tensor) -> Tensor:
    found = torch.zeros(3, 5)
    y, z = int(x.argmax()), 0
    while found[y, z] == 0 and z < 4:
        found[y, z] = 1.0
        z += 1
    return found


def path(x: Tensor) -> Any:
    cost = x[:, None] - x[None, :]
    i = j = 2
    steps = torch.zeros(3, 3)
    while i > 0 or j > 0:
        steps[i, j] += cost[i, j]
        if i > 0 and (j == 0 or cost[i - 1, j] < cost[i, j - 1]):
            i -= 1
        else:
            j -= 1
    return steps, i, j


def rows(x: Tensor) -> Tensor:
    table = torch.zeros(2, 3, 4)
    k = int(x.argmin())
    while k > 0:
        table[1, k, 1:] = table[0, k - 1, :3] + x[0]
        k -= 1
    return table


def counts(x: Tensor) -> Tensor:
    found, k = torch.zeros(3, dtype=torch.int64), 0
    while k < 3 and x[k] >= -5:
        found[(x[k] > 0).long()] += 1
        found[int(x[k] > 2)] += 2
        k += 1
    return found


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("function", [labels, path, rows, counts])
def test_a_file_gives_what_eager_gives(tmp_path: Path, function: Callable[[Tensor], Any], suffix: str) -> None:
    sg.save(function, saved := tmp_path / f"indices{suffix}", args=(CALLS[0],))
    loaded = sg.load(saved)
    for x in CALLS:
        assert_same(function(x), loaded(x))
