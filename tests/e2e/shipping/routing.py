"""Networks in which the data says what runs: an early exit, and a mixture of experts."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class EarlyExit(nn.Module):
    """Leaves at the first layer whose head is sure about every sample."""

    def __init__(self, width: int = 16, classes: int = 4, depth: int = 5, sure: float = 0.5) -> None:
        super().__init__()
        self.sure = sure
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.heads = nn.ModuleList(nn.Linear(width, classes) for _ in range(depth))

    @torch.no_grad()
    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        for depth, (layer, head) in enumerate(zip(self.layers, self.heads, strict=True)):
            x = x + torch.relu(layer(x))
            scores = head(x).softmax(dim=-1)
            if scores.amax(dim=-1).min() > self.sure:
                return scores, depth
        return scores, len(self.layers)


class Experts(nn.Module):
    """Each word goes to the two experts its router likes best; an expert reads the words that are its own."""

    def __init__(self, width: int = 16, experts: int = 5, top: int = 2) -> None:
        super().__init__()
        self.top = top
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )

    @torch.no_grad()
    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        batch, length, width = words.shape
        flat = words.view(-1, width)
        weights, chosen = self.router(flat).softmax(dim=-1).topk(self.top, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        output = torch.zeros_like(flat)
        load = torch.zeros(len(self.experts), dtype=torch.long)
        for number, expert in enumerate(self.experts):
            rows, places = (chosen == number).nonzero(as_tuple=True)
            if rows.numel() == 0:
                continue
            output.index_add_(0, rows, expert(flat[rows]) * weights[rows, places, None])
            load[number] = rows.numel()
        return output.view(batch, length, width), load
