"""numpy in converted code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import N, P, agree, refusal


def summed(x: Tensor) -> Tensor:
    return x + float(np.sum(x.detach().numpy()))


def returned(x: Tensor) -> Any:
    array = x.numpy()
    return array * 2, array.sum(), np.mean(array), array[0], array[1:], (array > 0)


def decided(x: Tensor) -> Any:
    array = x.numpy()
    if array.max() > 1:
        array = array - array.mean()
    steps = 0
    while np.abs(array).sum() > 1:
        array = array / 2
        steps += 1
    return torch.from_numpy(array), steps


def with_constants(x: Tensor) -> Any:
    weights = np.arange(3, dtype=np.float32)
    array = x.numpy()
    return weights + array, array + weights, np.dot(weights, array), array.astype(np.float64), array.dtype == np.float32


def many_functions(x: Tensor) -> Any:
    array = x.reshape(3, 1).numpy()
    return (
        np.concatenate([array, array], axis=1),
        np.where(array > 0, array, -array),
        np.linalg.norm(array),
        np.clip(array, -1, 2).T,
        np.argmax(array),
        np.maximum(array, 0.5),
        np.stack([array, array * 2]).shape,
    )


def iterated(x: Tensor) -> Any:
    total = 0.0
    for value in x.numpy():
        if value > 0:
            total += float(value)
    return total, len(x.numpy())


def written(x: Tensor) -> Any:
    """The array is the tensor's own memory."""
    y = x.clone()
    array = y.numpy()
    array[0] = 7
    array += 1
    return y, array


def printed(x: Tensor) -> Tensor:
    print(x.numpy(), f"{x.numpy().sum():.2f}")
    return x


@pytest.mark.parametrize(
    "function", [summed, returned, decided, with_constants, many_functions, iterated, written, printed]
)
def test_as_in_eager(function: Any) -> None:
    agree(function, P, N)


def test_what_eager_refuses() -> None:
    agree(lambda x: x.numpy(), P.clone().requires_grad_())


@pytest.mark.parametrize(
    "function", [lambda x: np.interp(x.numpy(), [0, 1], [2, 3]), lambda x: np.float32(x.numpy()[0])]
)
def test_refused(function: Any) -> None:
    assert refusal(function, P).reason.code == "SG301"
