"""Dicts with entries that are there on some paths only, and tensors that take different paths."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

UP = torch.tensor([3.0, 1.0, 2.0, 5.0])
DOWN = torch.tensor([-3.0, -1.0, -2.0, -1.0])
MIXED = torch.tensor([3.0, -4.0, 1.5, -1.0])
CALLS = (DOWN, UP, MIXED)


def half(x: Tensor) -> dict[str, Any]:
    """A dict that has "b" for `UP` and "c" for `DOWN`."""
    found: dict[str, Any] = {"a": x}
    if x.sum() > 1:
        found["b"] = x * 2
    elif x.sum() < -1:
        found["c"] = x[0].item()
    return found


def set_again_in_front(x: Tensor) -> Any:
    d = half(x)
    d["b"] = x
    d["z"] = 3
    return d
