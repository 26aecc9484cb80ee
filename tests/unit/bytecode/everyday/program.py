"""What the everyday functions are made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Calls = tuple[tuple[Any, ...], ...]


def everyday(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Mark a function to be run with the arguments of each call, twice."""

    def mark(function: Any) -> Any:
        function.calls = calls
        return function

    return mark


def random_tensor(seed: int, *shape: int) -> Tensor:
    """A tensor that is the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
