"""Small functions as people write them: numbers out of tensors, printing, logging, lists, exceptions, NumPy.

Each is a `Case` with inputs of one shape that take different paths.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
import torch
from torch import Tensor, nn

from tests.cases.case import Case
from tests.cases.tensors import f, normal

_normal = normal(seed=5)


class _Printing(logging.Handler):
    """Log records on whatever is standard output just then."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record))


logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)
logger.propagate = False
logger.addHandler(_Printing())


# ---- numbers out of tensors
def clipped_by_norm(x: Tensor, limit: float = 2.0) -> Tensor:
    norm = x.norm().item()
    if norm > limit:
        x = x * (limit / (norm + 1e-6))
    return x + 1


def mean_of_the_positive(x: Tensor) -> Tensor:
    count = int((x > 0).sum())
    if count == 0:
        return torch.zeros(())
    return x.clamp(min=0).sum() / count


def metrics(logits: Tensor, target: Tensor) -> dict[str, float]:
    loss = nn.functional.cross_entropy(logits, target)
    accuracy = (logits.argmax(dim=-1) == target).float().mean()
    found = {"loss": loss.item(), "accuracy": accuracy.item()}
    if found["accuracy"] > 0.5:
        found["perplexity"] = loss.exp().item()
    return found


def halved_until_small(x: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.abs().max().item() > 0.5:
        x = x / 2
        steps += 1
    return x, steps


# ---- printing and logging
def printed_mean(x: Tensor) -> Tensor:
    y = torch.relu(x) * 2
    print(f"mean {y.mean().item():.3f}")
    return y + x


def logged(x: Tensor) -> Tensor:
    y = torch.tanh(x)
    logger.info("norm %.3f", y.norm())
    if y.norm() > 1:
        logger.warning("too large")
        y = y / y.norm()
    return y * 3


def without_nan(x: Tensor) -> Tensor:
    if torch.isnan(x).any():
        print("NaN in", x.shape)
        x = torch.nan_to_num(x)
    return x.softmax(dim=-1)


def warned(x: Tensor) -> Tensor:
    largest = x.max()
    if largest > 3:
        warnings.warn("large values", stacklevel=2)
        x = x / largest
    return x.sin()


class Verbose(nn.Module):
    """Four layers; each step says how large its result is, and every second call keeps a history."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.calls = 0
        self.history: list[float] = []

    def step(self, number: int, layer: nn.Module, x: Tensor) -> Tensor:
        x = torch.relu(layer(x))
        print(f"layer {number}: {x.mean().item():.4f}")
        return x

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        for number, layer in enumerate(self.layers):
            x = self.step(number, layer, x)
        if self.calls % 2 == 0:
            self.history.append(x.sum().item())
        return x


# ---- lists, exceptions, NumPy
def norms_of_steps(x: Tensor, steps: int = 6) -> tuple[Tensor, list[float]]:
    norms = []
    for step in range(steps):
        x = torch.tanh(x * 1.5) + step
        norms.append(x.norm().item())
    return x, norms


def means_of_the_unpadded(x: Tensor, mask: Tensor) -> Tensor:
    pieces = []
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        pieces.append(x[row, :length].mean(dim=0) if length else x[row, 0])
    return torch.stack(pieces)


def sorted_by_score(x: Tensor) -> list[tuple[float, Tensor]]:
    rows = [(row.sum().item(), row * 2) for row in x]
    rows.sort(key=lambda pair: -pair[0])
    return rows


def root_or_none(x: Tensor) -> Tensor | None:
    try:
        if x.min().item() < 0:
            raise ValueError(f"negative: {x.min().item():.2f}")
        return x.sqrt()
    except ValueError as error:
        print("refused,", error)
        return None


def scaled_by_percentile(x: Tensor) -> Tensor:
    limit = float(np.percentile(x.numpy(), 90))
    return (x / max(limit, 1.0)).exp()


def _mask(*lengths: int) -> Tensor:
    return (torch.arange(5) < torch.tensor(lengths).unsqueeze(1)).long()


_LOGITS, _NAN = _normal(6, 4), f(0.5, float("nan"), 2)
_PADDED = [(_normal(3, 5, 2), _mask(*lengths)) for lengths in ((5, 2, 3), (1, 0, 4))]

SNIPPETS: tuple[Case, ...] = (
    Case("clip by norm", lambda: clipped_by_norm, [(s * _normal(4, 4),) for s in (1, 0.01, 2)]),
    Case("mean of the positive", lambda: mean_of_the_positive, [(_normal(8),), (-_normal(8).abs(),), (_normal(8),)]),
    Case("metrics", lambda: metrics, [(_LOGITS, t) for t in (torch.arange(6) % 4, _LOGITS.argmax(-1))]),
    Case("halve until small", lambda: halved_until_small, [(f(4, 1),), (f(0.1, 0.2),), (f(1000, 1),)]),
    Case("print the mean", lambda: printed_mean, [(_normal(4, 4),), (_normal(4, 4),)]),
    Case("logging", lambda: logged, [(_normal(4, 4),), (0.01 * _normal(4, 4),)]),
    Case("NaN check", lambda: without_nan, [(f(1, 2, 3),), (_NAN,), (f(3, 2, 1),)]),
    Case("warning", lambda: warned, [(f(1, 2),), (f(9, 2),), (f(0, 1),)]),
    Case("verbose layers", lambda: Verbose().eval(), [(_normal(2, 8),) for _ in range(4)], attrs=("calls", "history")),
    Case("list of norms", lambda: norms_of_steps, [(_normal(3, 3),), (_normal(3, 3),)]),
    Case("unpadded means", lambda: means_of_the_unpadded, _PADDED),
    Case("sort by score", lambda: sorted_by_score, [(_normal(4, 3),), (_normal(4, 3),)]),
    Case("try and except", lambda: root_or_none, [(f(4, 9),), (f(-1, 9),), (f(16, 1),)]),
    Case("NumPy percentile", lambda: scaled_by_percentile, [(_normal(20),), (9 * _normal(20),)]),
)
