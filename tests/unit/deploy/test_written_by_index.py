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


# ---- read at places of the run, while the same loop writes
def a_row_that_sees_the_write(x: Tensor) -> tuple[Tensor, Tensor]:
    marked, seen = torch.zeros(5, 5), torch.zeros(5)
    y = int(x.argmax())
    k = 0
    while k < 3 and x.sum() > 0:
        seen = seen + marked[y] * 2
        marked[y, k] = 1.0
        k += 1
    return marked, seen


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_the_longest_common_subsequence(suffix: str, tmp_path: Path) -> None:
    def longest(x: Tensor, y: Tensor) -> Tensor:
        table = torch.zeros(4, 3)
        for i in range(3):
            for j in range(2):
                longer = max(table[i, j + 1], table[i + 1, j])
                table[i + 1, j + 1] = table[i, j] + 1 if x[i] == y[j] else longer
        return table

    path, y = tmp_path / f"longest.{suffix}", torch.tensor([2, 3])
    sg.save(longest, path, args=(torch.tensor([1, 2, 3]), y))
    loaded = sg.load(path)
    for x in (torch.tensor([1, 2, 3]), torch.tensor([3, 2, 2]), torch.tensor([1, 1, 1])):
        assert torch.equal(loaded(x, y), longest(x, y))


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_a_row_that_sees_the_write(suffix: str, tmp_path: Path) -> None:
    path, x = tmp_path / f"read.{suffix}", torch.tensor([1.0, 5.0, 2.0, 3.0, 0.0])
    sg.save(a_row_that_sees_the_write, path, args=(x,))
    loaded = sg.load(path)
    for given in (x, -x, x * 0):
        torch.testing.assert_close(loaded(given), a_row_that_sees_the_write(given))


def test_a_view_sees_what_is_written_behind_it(tmp_path: Path) -> None:
    def written_behind(x: Tensor) -> Tensor:
        marked = torch.zeros(5)
        y = int(x.argmax())
        seen = marked[y]
        marked[y] = 3.0
        return seen + 1

    x = torch.tensor([1.0, 5.0, 2.0, 3.0, 0.0])
    sg.save(written_behind, tmp_path / "view.pt2", args=(x,))
    loaded = sg.load(tmp_path / "view.pt2")
    for given in (x, -x):
        assert loaded(given) == written_behind(given)
