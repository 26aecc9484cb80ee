"""Checks against eager PyTorch that fail, or that cannot be made."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.messages.case import told


def halving(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    return lambda *given: [each.half() for each in module(*given)]


@told("SG502")
def a_backend_is_careless() -> Any:
    def normalised(x: Tensor) -> Tensor:
        return (x - x.mean()) / x.std() if x.sum() > 0 else x

    return sg.to_static(normalised, backend=halving, check=1)(torch.arange(3.0))


@told("SG503")
def a_lock_is_checked() -> Any:
    lock = threading.Lock()

    def share(x: Tensor, total: Any) -> Tensor:
        return x / total["sum"] if x.sum() > 0 else x

    return sg.to_static(share, backend="eager", check=1)(torch.ones(2), {"sum": 2.0, "lock": lock})
