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


def laid_otherwise(x: Tensor, c: Tensor) -> Tensor:
    kept = x[:, x[0] > 0]
    if c > 0:
        y = kept.t()
    else:
        y = (kept * 2).t()
    return y + 1


def of_known_sizes(x: Tensor, c: Tensor) -> Tensor:
    if c > 0:
        y = x.t()
    else:
        y = (x * 2).t()
    return y + 1


def masked(x: Tensor, c: Tensor) -> Tensor:
    """As the masks of transformers' decoders: there is one or none, made by one of two functions and expanded."""
    text = x[0][x[0] > 0]
    n = text.shape[0]
    q, k = torch.arange(n)[None, None, :, None], torch.arange(n)[None, None, None, :]
    positions = torch.arange(n)[None].expand(1, -1) if c != -1 else torch.zeros_like(text, dtype=torch.int64)[None]
    mask = None
    if not bool(c > 1):
        m = k <= q if c > 0 else positions[0][q] == positions[0][k]
        mask = m.expand(1, -1, n, n)
    return text.sum() if mask is None else torch.where(mask, text, 0.0).sum()


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
FAST |= {("laid_otherwise", ".pt2"), ("of_known_sizes", ".onnx"), ("masked", ".pt2")}
MAKERS: dict[str, Callable[[], Any]] = {
    "doubled": lambda: doubled,
    "repeated": lambda: repeated,
    "turned": lambda: turned,
    "laid_otherwise": lambda: laid_otherwise,
    "of_known_sizes": lambda: of_known_sizes,
    "masked": lambda: masked,
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
