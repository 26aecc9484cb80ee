"""A list of which only the run knows the length, and inputs that make it long, empty or in between."""

from __future__ import annotations

import torch
from torch import Tensor

CALLS = [torch.tensor(each) for each in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [2.0, -1.0, 3.0])]


def grown(x: Tensor) -> list[float]:
    """The elements above zero."""
    found = []
    for value in x.tolist():
        if value > 0:
            found.append(value)
    return found
