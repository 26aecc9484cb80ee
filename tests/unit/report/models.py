"""What the tests of reports explain. The line numbers of this file are in golden texts: add only at its end."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def halve(x: Tensor, limit: Tensor, scale: int = 2, mode: str = "mean") -> tuple[Tensor, int]:
    """Halve until it is small."""
    steps = 0
    if mode == "mean":
        x = x - x.mean()
    else:
        x = x - x.sum()
    for i in range(3):
        x = x + i
    while x.norm() > limit:
        x = x / scale
        if x.sum() > 0:
            x = x.relu()
            steps += 1
        else:
            x = x * 0.5
    rows = x.shape[0]
    y = x.reshape(
        rows,
        -1,
    )
    return y + 1, steps


def unlike(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x
    else:
        y = x.unsqueeze(0)
    return y + 1


def reads_a_file(x: Tensor) -> Tensor:
    y = x + 1
    for _ in range(2):
        y = y * 2
    with open("weights.txt") as file:
        return y + float(file.read())


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.rate = 0.5
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        if self.training:
            h = h + 1
        if h.sum() > 0:
            h = torch.relu(h)
        return x + self.rate * h


class Net(nn.Module):
    def __init__(self, layers: int = 3, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x.mean()
