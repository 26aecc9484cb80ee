"""Short names for the tensors that cases are called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def f(*values: Any) -> Tensor:
    """A float32 tensor: ``f(1)`` is 0-d, ``f(1, 2)`` and ``f([1, 2])`` are vectors."""
    return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.float32)


def i32(*values: Any) -> Tensor:
    """An int32 tensor, as `f`."""
    return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.int32)


def i64(*values: Any) -> Tensor:
    """An int64 tensor, as `f`."""
    return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.int64)


def ones(*shape: int) -> Tensor:
    return torch.ones(*shape)


def normal(seed: int) -> Callable[..., Tensor]:
    """A `randn` of its own, so that adding a case to one file leaves the inputs of the others alone."""
    generator = np.random.RandomState(seed)
    return lambda *shape: torch.from_numpy(generator.randn(*shape).astype(np.float32))


def integers(seed: int) -> Callable[..., Tensor]:
    """``randint(high, *shape)``: int64 below `high`, from a generator of its own."""
    generator = np.random.RandomState(seed)
    return lambda high, *shape: torch.from_numpy(generator.randint(high, size=shape).astype(np.int64))
