"""A case on another device: its module, its inputs and what the code makes are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from tests.cases.case import Case


def checked_on(device: str, case: Case, check: Callable[[Case], None]) -> None:
    """Check a case with its module and inputs on a device, which is the default device meanwhile.

    Args:
        device: as `torch.device` takes it.
        case: the case, whose inputs are on the CPU.
        check: one of the checks of `harness`.

    Raises:
        AssertionError: as the check does.
    """
    with torch.device(device):
        moved = replace(case, make=lambda: _made(case, device), inputs=[_moved(args, device) for args in case.inputs])
        check(moved)


def _made(case: Case, device: str) -> Any:
    target = case.make()
    return target.to(device) if isinstance(target, nn.Module) else target


def _moved(args: tuple[Any, ...], device: str) -> Any:
    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), args)
