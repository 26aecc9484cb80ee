"""Programs of the zoo: solvers of differential equations, and minimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.zoo.entries import Entry, Made


class _Field(nn.Module):
    """A small vector field that counts nothing and keeps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        return self.net(y) * (1 + t)  # type: ignore[no-any-return]  # of a module


class _Solved(nn.Module):
    """A neural differential equation."""

    def __init__(self, method: str, **options: Any) -> None:
        super().__init__()
        self.field = _Field()
        self.method, self.options = method, options

    def forward(self, y: Tensor, t: Tensor) -> Tensor:
        from torchdiffeq import odeint

        found: Tensor = odeint(self.field, y, t, method=self.method, **self.options)
        return found


def _starts() -> list[tuple[Any, ...]]:
    ends = torch.tensor([0.0, 0.5, 1.0])
    drawn = torch.Generator().manual_seed(0)
    return [(torch.randn(3, 2, generator=drawn) * (1 + 3 * n), ends * (1 + n)) for n in range(3)]


def _odeint(method: str, **options: Any) -> Callable[[], Made]:
    return lambda: Made(_Solved(method, **options), _starts, trains=True)


FIXED = ("euler", "midpoint", "heun3", "rk4", "explicit_adams", "implicit_adams")
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")

ENTRIES = tuple(Entry(f"odeint {method}", "torchdiffeq", _odeint(method)) for method in (*FIXED, *ADAPTIVE))
