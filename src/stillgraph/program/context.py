"""The thread-wide modes under which an operation runs: grad, inference and autocast."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Autocast:
    """Autocast as it stands for one device type."""

    device_type: str
    dtype: torch.dtype
    cache_enabled: bool

    def __str__(self) -> str:
        return f"autocast({self.device_type}, {str(self.dtype).removeprefix('torch.')})"


@dataclass(frozen=True)
class Context:
    """Every recorded operation carries the context it was called in; a lowering enters and leaves it."""

    grad: bool
    inference: bool
    autocast: tuple[Autocast, ...]

    def __str__(self) -> str:
        parts = ["inference mode is on" if self.inference else f"grad mode is {'on' if self.grad else 'off'}"]
        return ", ".join(parts + [str(a) for a in self.autocast])


_AUTOCAST_DEVICES = ("cpu", "cuda")


def current_context() -> Context:
    """Read torch's modes of this thread."""
    autocast = tuple(
        Autocast(device, torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled())
        for device in _AUTOCAST_DEVICES
        if torch.is_autocast_enabled(device)
    )
    return Context(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast)
