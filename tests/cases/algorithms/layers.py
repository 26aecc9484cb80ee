"""Layers with control flow of their own."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.cases.case import case
from tests.cases.tensors import normal

randn = normal(seed=7)


class EarlyExitMLP(nn.Module):
    """Stops at the first block whose classifier is confident about every sample."""

    def __init__(self, width: int = 16, classes: int = 4, depth: int = 4, confidence: float = 0.6):
        super().__init__()
        self.confidence = confidence
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.heads = nn.ModuleList(nn.Linear(width, classes) for _ in range(depth))

    def forward(self, x: Tensor):
        for depth, (block, head) in enumerate(zip(self.blocks, self.heads)):
            x = x + torch.tanh(block(x))
            probabilities = head(x).softmax(dim=-1)
            if probabilities.amax(dim=-1).min() > self.confidence:
                return probabilities, depth
        return probabilities, len(self.blocks)


case(EarlyExitMLP, [(s * randn(3, 16),) for s in (1, 10, 3, 0.1)], grad=True, pgrad=True)


class MixtureOfExperts(nn.Module):
    def __init__(self, width: int = 8, experts: int = 4):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        weights, selected = self.gate(x).softmax(dim=-1).max(dim=-1)
        out = torch.zeros_like(x)
        for e in range(len(self.experts)):
            idx = (selected == e).nonzero().squeeze(1)
            if idx.numel() > 0:
                out[idx] += weights[idx, None] * self.experts[e](x[idx])
        return out


case(
    MixtureOfExperts, [(randn(6, 8),), (randn(6, 8),), (randn(1, 8).expand(6, 8).contiguous(),)], grad=True, pgrad=True
)


class RunningNormalizer(nn.Module):
    """Running statistics in training; a batch far from them replaces them instead of being averaged in."""

    def __init__(self, features: int = 3, momentum: float = 0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("resets", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                mean, var = x.mean(dim=0), x.var(dim=0, unbiased=False)
                if (mean - self.mean).abs().max() > 10:
                    self.mean = mean
                    self.var = var
                    self.resets += 1
                else:
                    self.mean.lerp_(mean, self.momentum)
                    self.var.lerp_(var, self.momentum)
        return (x - self.mean) / (self.var + 1e-5).sqrt()


case(RunningNormalizer, [(randn(8, 3),), (randn(8, 3) + 50,), (randn(8, 3) + 50,), (randn(8, 3),)])


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "square": lambda x: x * x,
}


class Feedforward(nn.Module):
    """The activation is looked up by name; a saturated input is squashed first."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, activation: str = "gelu") -> Tensor:
        if x.abs().max() > 5:
            x = torch.tanh(x)
        return self.down(ACTIVATIONS[activation](self.up(x)))


case(
    Feedforward,
    [(randn(2, 6), "relu"), (9 * randn(2, 6), "relu"), (randn(2, 6), "square"), (9 * randn(2, 6), "gelu")],
    grad=True,
    pgrad=True,
)
