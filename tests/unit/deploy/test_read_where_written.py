"""Elements of a tensor that are read at places of the run, while the same loop writes the tensor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def two_places(x: Tensor) -> Tensor:
    marked = torch.zeros(5, 5)
    y, z = int(x.argmax()), 0
    while marked[y, z] == 0 and z < 4:
        marked[y, z] = 1.0
        z += 1
    return marked


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
@pytest.mark.parametrize("function", [two_places, a_row_that_sees_the_write])
def test_reads_in_a_loop_that_writes(function: Callable[[Tensor], object], suffix: str, tmp_path: Path) -> None:
    path, x = tmp_path / f"read.{suffix}", torch.tensor([1.0, 5.0, 2.0, 3.0, 0.0])
    sg.save(function, path, args=(x,))
    loaded = sg.load(path)
    for given in (x, -x, x * 0):
        torch.testing.assert_close(loaded(given), function(given))


def test_a_view_sees_what_is_written_behind_it(tmp_path: Path) -> None:
    def written_behind(x: Tensor) -> Tensor:
        marked = torch.zeros(5)
        y = int(x.argmax())
        seen = marked[y]
        marked[y] = 3.0
        return seen + 1

    x = torch.tensor([1.0, 5.0, 2.0, 3.0, 0.0])
    try:
        sg.save(written_behind, tmp_path / "view.pt2", args=(x,))
    except sg.ExportError:
        return  # no form is better than a wrong one
    loaded = sg.load(tmp_path / "view.pt2")
    for given in (x, -x):
        assert loaded(given) == written_behind(given)
