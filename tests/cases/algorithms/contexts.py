"""Context managers inside branches."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from tests.cases.case import case
from tests.cases.tensors import f, normal

randn = normal(seed=7)
WEIGHT = 0.3 * randn(4, 4)


@contextlib.contextmanager
def scaled_by(scales: list[float], factor: float) -> Iterator[float]:
    scales.append(factor)
    try:
        yield factor
    finally:
        scales.pop()


def frozen_when_small(x: Tensor, weight: Tensor) -> Tensor:
    """Large inputs train the weight; for small ones it is a constant."""
    if x.abs().mean() > 1:
        y = x @ weight
    else:
        with torch.no_grad():
            y = x @ weight
        y = y + x
    return y


case(frozen_when_small, [(randn(2, 4) + 3, WEIGHT), (0.1 * randn(2, 4), WEIGHT)], grad=True)


def mixed_precision_when_safe(x: Tensor, weight: Tensor) -> Tensor:
    if x.abs().max() < 10:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ weight
        y = y.float()
    else:
        y = x @ weight
    return y


case(mixed_precision_when_safe, [(randn(2, 4), WEIGHT), (50 * randn(2, 4), WEIGHT)])


def scaled_when_large(x: Tensor) -> Tensor:
    scales = [1.0]
    if x.norm() > 4:
        with scaled_by(scales, 0.5) as factor:
            y = x * scales[-1] + factor
    else:
        with scaled_by(scales, 2.0):
            y = x * scales[-1]
    return y * scales[-1] + len(scales)


case(scaled_when_large, [(f(1, 2),), (f(8, 9),)])
