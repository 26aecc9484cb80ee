"""An index, start or count that is out of its range fails in a file, and in what Inductor compiles, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import stillgraph as sg

WEIGHTS = torch.arange(10.0).reshape(5, 2)
ONES = torch.ones(2, 2)


def embedded(x: Tensor, n: Tensor) -> Tensor:
    return F.embedding(n.reshape(1), WEIGHTS)


def gathered(x: Tensor, n: Tensor) -> Tensor:
    return x.gather(0, n.reshape(1))


def selected(x: Tensor, n: Tensor) -> Tensor:
    return torch.stack([x, x + 1]).index_select(-1, torch.stack([n, n]).int())


def scattered(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    index, ones = n.reshape(1), torch.ones(1)
    return x.scatter(0, index, 7.0), x.scatter(0, index, ones), x.scatter_reduce(0, index, ones, "amax")


def added(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    rows = torch.stack([x, x + 1], 1)
    return x.scatter_add(0, n.reshape(1), torch.ones(1)), rows.index_add(0, torch.stack([n, n]), ONES, alpha=2)


def copied(x: Tensor, n: Tensor) -> Tensor:
    return torch.stack([x, x + 1], 1).index_copy(0, n.reshape(1), ONES[:1] * 7)


def filled(x: Tensor, n: Tensor) -> Tensor:
    return x.index_fill(0, n.reshape(1), 3.5)


def one_hot(x: Tensor, n: Tensor) -> Tensor:
    return F.one_hot(n.reshape(1), 5)


def loss(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    targets, rows = torch.stack([n, n * 0 - 100, n * 0 + 1]), x.reshape(1, 5).expand(3, 5)
    return F.cross_entropy(rows, targets), F.nll_loss(rows, targets)


def narrowed(x: Tensor, n: Tensor) -> Tensor:
    return x.narrow(0, int(n), 2)


def narrowed_by_a_tensor(x: Tensor, n: Tensor) -> Tensor:
    return torch.narrow(x, 0, n, 2)


def of_a_length(x: Tensor, n: Tensor) -> Tensor:
    return x.narrow(0, 1, int(n))


def counted(x: Tensor, n: Tensor) -> Tensor:
    return torch.arange(int(n))


def counted_from(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    return torch.arange(1, int(n)), torch.arange(int(n), 8)


def divided(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    return 7 // n, 7 % n


def rolled(x: Tensor, n: Tensor) -> Tensor:
    return torch.stack([x, x + 9]).roll((int(n), 1), (1, 0))


def smallest(x: Tensor, n: Tensor) -> Tensor:
    return x.kthvalue(int(n))[0]


def diagonal(x: Tensor, n: Tensor) -> Tensor:
    return torch.eye(int(n))


def without_dimensions(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    total, index = x.sum(), n.reshape(1)
    one = torch.ones(())
    return total.index_add(0, index, one), total.index_copy(0, index, one), total.index_fill(0, index, 2.0)


QUICK = [gathered, narrowed, counted]
MORE = [embedded, selected, scattered, added, copied, filled, one_hot, loss, narrowed_by_a_tensor, of_a_length]
MORE += [counted_from, divided, rolled, smallest, diagonal, without_dimensions]


def outcome(function: Callable[..., Any], n: int) -> Any:
    try:
        return function(torch.arange(5.0), torch.tensor(n))
    except (RuntimeError, IndexError, ZeroDivisionError):  # which of them differs between files and PyTorch
        return "raised"


def check(function: Callable[..., Any], other: Callable[..., Any]) -> None:
    for n in (0, 1, 3, 4, 5, 7, -1, -2, -6):
        ours, theirs = outcome(other, n), outcome(function, n)
        assert (ours == "raised") == (theirs == "raised"), n
        if theirs != "raised":
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("function", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE)])
def test_in_an_onnx_file(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "f.onnx", args=(torch.arange(5.0), torch.tensor(2)))
    check(function, sg.load(tmp_path / "f.onnx"))


@pytest.mark.parametrize("function", [pytest.param(each, marks=pytest.mark.slow) for each in [*QUICK, *MORE]])
def test_in_a_pt2_file(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "f.pt2", args=(torch.arange(5.0), torch.tensor(2)))
    check(function, sg.load(tmp_path / "f.pt2"))


@pytest.mark.slow
@pytest.mark.parametrize("function", [selected, added, copied, gathered, embedded])
def test_compiled_by_inductor(function: Callable[..., Any]) -> None:
    check(function, sg.to_static(function, full_graph=True, backend="inductor"))
