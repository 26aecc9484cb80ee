"""A module of settings as users write them, for tests that change it."""

from __future__ import annotations

import os
from typing import Any

from torch import Tensor

K = 2.0
ITEMS = [1, 2]
COMPUTED = {"lazy": 4}


class Settings:
    rate = 1


def helper(x: Tensor) -> Tensor:
    return x * K


def from_environment(name: str, default: float) -> float:
    return float(os.environ.get(name, default))


def __getattr__(name: str) -> Any:
    if name in COMPUTED:
        return COMPUTED[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
