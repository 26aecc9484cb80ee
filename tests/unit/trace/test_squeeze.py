"""``squeeze`` of a size that only the run knows: where it is 1 the result has a dimension less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

ROWS = torch.arange(12.0).reshape(6, 2)
MASKS = [torch.tensor(mask) for mask in ([1, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0], [0] * 6, [1] * 6)]


def returned(mask: Tensor) -> Any:
    return mask.nonzero().squeeze()


def used_as_an_index(mask: Tensor) -> Any:
    found = torch.squeeze(mask.nonzero())
    return ROWS[found], found.dim(), found + 1, len(found) if found.dim() else -1


def of_a_known_size(mask: Tensor) -> Any:
    return mask.nonzero().squeeze(1), mask.nonzero().squeeze(-1)


def of_the_first_dimension(mask: Tensor) -> Any:
    found = mask.nonzero().squeeze(0)
    return found.shape, found.sum()


def of_columns(mask: Tensor) -> Any:
    chosen = ROWS[mask > 0].squeeze()
    return chosen.sum(-1), chosen.shape[-1]


def in_an_early_exit(mask: Tensor) -> Any:
    found = mask.nonzero().squeeze()
    if found.numel() == 0:
        return torch.zeros(2)
    return ROWS[found].reshape(-1, 2).mean(0)


def iterated(mask: Tensor) -> Any:
    total = torch.zeros(())
    for index in mask.nonzero().squeeze():
        total = total + ROWS[index].sum()
    return total


def counted(mask: Tensor) -> Any:
    found, out = mask.nonzero().squeeze(), []
    for k in range(len(found)):
        out.append(ROWS[found[k]] * k)
    return torch.stack(out) if out else torch.zeros(0)


@pytest.mark.parametrize(
    "function",
    [
        *(returned, used_as_an_index, of_a_known_size, of_the_first_dimension, of_columns, in_an_early_exit),
        *(iterated, counted),  # where one is found these raise TypeError, as eager PyTorch does
    ],
)
def test_the_rank_is_the_run_s(function: Callable[[Tensor], Any]) -> None:
    agree(function, *MASKS)


def test_a_file_raises_on_the_path_on_which_eager_does(tmp_path: Path) -> None:
    sg.save(in_an_early_exit, path := tmp_path / "file.pt2", args=(MASKS[0],))
    loaded = sg.load(path)
    for mask in MASKS:
        torch.testing.assert_close(loaded(mask), in_an_early_exit(mask))


def test_a_loop_keeps_the_rank(tmp_path: Path) -> None:
    def stepped(mask: Tensor) -> Any:
        found, steps = mask.nonzero().squeeze(), 0
        while steps < 3 and found.numel() > 0:
            found, steps = found + 1, steps + 1
        return found

    with pytest.raises(sg.CaptureError, match="SG201") as caught:
        sg.to_static(stepped, backend="eager")(MASKS[0])
    assert str(caught.value).count("found, steps = mask.nonzero().squeeze(), 0") == 2
