"""Functions and modules that are saved as Python source: what is written names their lines."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Pair = namedtuple("Pair", "left right")


@dataclass
class Step:
    """A point and how many steps led there."""

    x: Tensor
    steps: int


class NotPositive(ValueError):
    """Of this file, so that a written one needs its own."""


def halve(x: Tensor, limit: Tensor) -> dict[str, Any]:
    """The solver of the project's first page."""
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return {"x": x, "steps": steps}


def guarded(x: Tensor) -> Any:
    """Exceptions, prints and classes of this file."""
    try:
        if x.min() <= 0:
            raise NotPositive("no logarithm")
        y = x.log()
    except NotPositive:
        y = x.abs()
    if y.sum() > 10:
        print(f"large: {y.sum():.1f}")
    best = y.argmax()
    return Step(y, 1), Pair(y[best], int(best))


def grown(x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """A list of as many tensors as the run says."""
    seen = []
    while x.sum() < 10:
        x = x * 2 if x.max() > 1 else x + 1
        seen.append(x.sum())
    return x, seen


def recursive(x: Tensor, depth: Tensor) -> Tensor:
    """Calls itself on what only the run knows."""
    if depth <= 0:
        return x
    return recursive(x / 2, depth - 1) + recursive(x * 3, depth - 2)


class Gate(nn.Module):
    """Tied weights, a buffer that is written, a number that is counted, an early way out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.out = nn.Linear(3, 3)
        self.out.weight = self.layers[0].weight
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x: Tensor) -> tuple[Tensor, bool]:
        self.calls += 1
        self.seen += x.shape[0]
        for layer in self.layers:
            x = torch.relu(layer(x))
            if x.max() < 0.1:
                return x, True
        return self.out(self.norm(x)), False


class Decoder(nn.Module):
    """A tiny transformer that decodes greedily."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: Tensor, end: int = 3) -> Tensor:
        for _ in range(6):
            hidden = self.block(self.embed(tokens))
            following = self.head(hidden[:, -1]).argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, following], dim=1)
            if (following == end).all():
                break
        return tokens


class Classifier(nn.Module):
    """Leaves early where it is sure."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.early = nn.Linear(4, 2)
        self.second = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.first(x))
        early = self.early(x).softmax(-1)
        if early.max() > 0.8:
            return early
        return self.second(x).softmax(-1)


def newton(x: Tensor, tolerance: float = 1e-4) -> tuple[Tensor, int]:
    """A square root of two, by steps that gradients follow."""
    steps = 0
    while (x * x - 2).abs().max() > tolerance:
        x = x - (x * x - 2) / (2 * x)
        steps += 1
    return x, steps
