"""Changes of torch's settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.soundness.following import Change, follows, setting

WEIGHT = torch.ones(3, requires_grad=True)


def requires_grad(x: Tensor) -> bool:
    return (x * WEIGHT).requires_grad


def new_tensor(x: Tensor) -> Tensor:
    return torch.ones(3)


def new_number(x: Tensor) -> Tensor:
    return torch.tensor([1.5]) + x


def is_deterministic(x: Tensor) -> Tensor:
    return x * 2 if torch.are_deterministic_algorithms_enabled() else x


def benchmarks(x: Tensor) -> Tensor:
    return x * 2 if torch.backends.cudnn.benchmark else x


def precision(x: Tensor) -> Tensor:
    return x * 2 if torch.get_float32_matmul_precision() == "high" else x


def threads(x: Tensor) -> Tensor:
    return x * torch.get_num_threads()


def finfo_of_default(x: Tensor) -> Tensor:
    return x + torch.finfo(torch.get_default_dtype()).bits


def calls(change: Callable[[Any], object], *values: Any) -> list[Change]:
    return [partial(change, value) for value in values]


DTYPES = (torch.float64, torch.float32)
SETTINGS: dict[str, tuple[Callable[[Tensor], Any], list[Change]]] = {
    "grad mode": (requires_grad, calls(torch.set_grad_enabled, False, True)),
    "dtype of a new tensor": (new_tensor, calls(torch.set_default_dtype, *DTYPES)),
    "dtype of a number": (new_number, calls(torch.set_default_dtype, *DTYPES)),
    "the default dtype": (finfo_of_default, calls(torch.set_default_dtype, *DTYPES)),
    "deterministic algorithms": (is_deterministic, calls(torch.use_deterministic_algorithms, True, False)),
    "a backend's flag": (
        benchmarks,
        [setting(torch.backends.cudnn, benchmark=True), setting(torch.backends.cudnn, benchmark=False)],
    ),
    "matmul precision": (precision, calls(torch.set_float32_matmul_precision, "high", "highest")),
    "threads": (threads, calls(torch.set_num_threads, 2, 1)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting(name: str) -> None:
    function, changes = SETTINGS[name]
    follows(function, *changes)
