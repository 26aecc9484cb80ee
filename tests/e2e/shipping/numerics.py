"""Solvers: an ordinary differential equation with a step that adapts itself, and k-means until nothing moves."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Field(nn.Module):
    """A neural ordinary differential equation, solved by Bogacki and Shampine's pair of order 3 and 2."""

    def __init__(self, width: int = 3, tolerance: float = 1e-4, max_steps: int = 500) -> None:
        super().__init__()
        self.tolerance, self.max_steps = tolerance, max_steps
        self.net = nn.Sequential(nn.Linear(width + 1, 16), nn.Tanh(), nn.Linear(16, width))

    def slope(self, t: float, y: Tensor) -> Tensor:
        return self.net(torch.cat([y, torch.full_like(y[:, :1], t)], dim=1))

    @torch.no_grad()
    def forward(self, y: Tensor, end: Tensor) -> tuple[Tensor, Tensor, int]:
        last = end.item()
        t, h, rejected = 0.0, 0.1, 0
        times = [t]
        path = [y]
        k1 = self.slope(t, y)
        for _ in range(self.max_steps):
            if t >= last:
                break
            h = min(h, last - t)
            k2 = self.slope(t + h / 2, y + h / 2 * k1)
            k3 = self.slope(t + 3 * h / 4, y + 3 * h / 4 * k2)
            candidate = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
            k4 = self.slope(t + h, candidate)
            error = (h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)).abs().max().item() / self.tolerance
            if error <= 1.0:
                t, y, k1 = t + h, candidate, k4
                times.append(t)
                path.append(y)
            else:
                rejected += 1
            h = h * min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** (-1 / 3)))
        else:
            raise RuntimeError("the solver did not arrive")
        return torch.stack(path), torch.tensor(times), rejected


def kmeans(points: Tensor, centres: Tensor, tolerance: float = 1e-4) -> tuple[Tensor, Tensor, int]:
    """Cluster points; a centre that has no points moves to the one that is worst off."""
    steps = 0
    while True:
        distances = torch.cdist(points, centres)
        nearest, labels = distances.min(dim=1)
        moved = torch.empty_like(centres)
        for k in range(centres.shape[0]):
            members = points[labels == k]
            if len(members) > 0:
                moved[k] = members.mean(dim=0)
            else:
                moved[k] = points[nearest.argmax()]
        shift = (moved - centres).norm()
        centres = moved
        steps += 1
        if shift < tolerance:
            return centres, labels, steps
