"""Pieces of a training loop."""

import torch
from torch import Tensor, nn

from tests.cases.case import case
from tests.cases.tensors import f, normal

randn = normal(seed=7)


def clip_gradients(gradients: list[Tensor], max_norm: float = 1.0):
    total = torch.stack([g.norm() for g in gradients]).norm()
    if total > max_norm:
        gradients = [g * (max_norm / (total + 1e-6)) for g in gradients]
    return gradients, total


case(clip_gradients, [([0.1 * randn(3), 0.1 * randn(2, 2)],), ([5 * randn(3), randn(2, 2)],)])


class LossScaler(nn.Module):
    """Unscales gradients; a non-finite one skips the step and halves the scale."""

    def __init__(self, scale: float = 1024.0, growth_interval: int = 2):
        super().__init__()
        self.growth_interval = growth_interval
        self.good_steps = 0
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, weight: Tensor, gradient: Tensor, lr: float = 0.1) -> Tensor:
        gradient = gradient / self.scale
        if not torch.isfinite(gradient).all():
            self.scale = self.scale / 2
            self.good_steps = 0
            return weight
        self.good_steps += 1
        if self.good_steps == self.growth_interval:
            self.scale = self.scale * 2
            self.good_steps = 0
        return weight - lr * gradient


case(
    LossScaler,
    [
        (f(1, 2), f(3, 4)),
        (f(1, 2), f(3, float("inf"))),
        (f(1, 2), f(3, 5)),
        (f(1, 2), f(3, 6)),
        (f(1, 2), f(float("nan"), 6)),
    ],
    attrs=("good_steps",),
)


class WarmupThenDecay(nn.Module):
    """A schedule as a small state machine: it leaves warm-up by count and steady state by loss."""

    def __init__(self, warmup: int = 2):
        super().__init__()
        self.warmup = warmup
        self.phase = "warmup"
        self.step = 0
        self.lr = 0.0

    def forward(self, weight: Tensor, loss: Tensor) -> Tensor:
        self.step += 1
        if self.phase == "warmup":
            self.lr = 0.1 * self.step / self.warmup
            if self.step >= self.warmup:
                self.phase = "steady"
        elif self.phase == "steady":
            if loss < 1.0:
                self.phase = "decay"
        else:
            self.lr = self.lr * 0.5
        return weight - self.lr * loss


case(
    WarmupThenDecay,
    [(f(1, 2), f(v)) for v in (3.0, 2.0, 1.5, 0.5, 0.4, 0.3)],
    attrs=("phase", "step", "lr"),
    programs=3,
    export_refused="a call changes args[0].phase",
)


def quantize(x: Tensor, bits: int = 8):
    """Symmetric quantisation with a scale chosen from the data."""
    limit = 2 ** (bits - 1) - 1
    amax = x.abs().max()
    if amax == 0:
        scale = torch.ones(())
    else:
        scale = amax / limit
    return (x / scale).round().clamp(-limit, limit).to(torch.int8), scale


case(quantize, [(randn(5),), (torch.zeros(5),), (100 * randn(5),), (randn(5), 4)])
