"""A module with an assertion that pytest does not rewrite: its own code reaches all tests of a session."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Careful(nn.Module):
    def __init__(self, asserts: bool) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.asserts = asserts
        self.calls = 0
        self.bad = 0
        self.last: Any = None
        self.seen: list[Any] = []
        self.named: dict[str, Any] = {"calls": 0}

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.total.add_(x)
        self.seen.append(x.sum().item())
        self.named["last"] = x * 2
        if self.asserts:
            assert x.sum() > 0, f"sum is {x.sum().item()}"
        elif x.sum() < 0:
            self.bad += 1
            self.last = x
            if x.sum() < -5:
                self.last = x + 1
                raise KeyError("very low")
            raise ValueError("low")
        self.calls += 10
        return x + self.calls
