"""Branches whose arms give tensors of several dimensions, of sizes that only the run knows and that may be 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.sampling import only

OPEN = [sg.InputSpec([None, None]), None]


def doubled(x: Tensor, c: Tensor) -> Tensor:
    kept = x[:, x[0] > 0]
    if c > 0:
        kept = torch.cat([kept, kept])
    return kept * 2


def repeated(x: Tensor, c: Tensor) -> Tensor:
    kept = x[:, x[0] > 0][:1] * c
    if kept.shape[0] != x.shape[0]:
        kept = kept.expand(x.shape[0], -1)
    return kept + x.sum()


def turned(x: Tensor, c: Tensor) -> Tensor:
    kept = x[:, x[0] > 0][None]
    if c > 0:
        kept = torch.cat([kept, kept, kept], dim=1)
    return kept.transpose(1, 2).contiguous() + c


class Counting(nn.Module):
    """What it writes to makes torch trace the program once more."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        kept = x[:, x[0] > 0]
        while c > 0:
            kept = torch.cat([kept, x[:, x[0] > c], x[:, :1]], dim=1)
            c = c - 1
        self.seen += kept.sum()
        return kept * self.seen


INPUTS = [
    (torch.tensor([[1.0, -1.0, 2.0], [3.0, 4.0, 5.0]]), torch.tensor(1.0)),
    (torch.tensor([[1.0, -1.0, 2.0], [3.0, 4.0, 5.0]]), torch.tensor(-1.0)),
    (torch.tensor([[-1.0, -1.0]]), torch.tensor(2.0)),
    (torch.tensor([[1.0, 3.0, 2.0, 1.0]]), torch.tensor(2.0)),
    (torch.tensor([[-1.0, -1.0], [0.0, 1.0], [1.0, 1.0]]), torch.tensor(-1.0)),
]


FAST = {("doubled", ".pt2"), ("repeated", ".onnx"), ("Counting", ".pt2")}
MAKERS: dict[str, Callable[[], Any]] = {
    "doubled": lambda: doubled,
    "repeated": lambda: repeated,
    "turned": lambda: turned,
    "Counting": Counting,
}
FILES = [(name, suffix) for name in MAKERS for suffix in (".pt2", ".onnx")]


@pytest.mark.parametrize(("name", "suffix"), only(FILES, FAST))
def test_a_file_for_every_size(name: str, suffix: str, tmp_path: Path) -> None:
    make = MAKERS[name]
    path = tmp_path / f"joined{suffix}"
    sg.save(make(), path, args=INPUTS[0], input_spec=OPEN)
    loaded, expected = sg.load(path), make()
    for given in INPUTS:
        torch.testing.assert_close(loaded(*given), expected(*given))
