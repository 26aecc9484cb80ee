"""``f(**options)`` of a dict with keys that are there on some paths only."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import agree

INPUTS = [(torch.tensor(each),) for each in ([1.0, 2.0], [-1.0, -2.0], [3.0, -5.0], [-3.0, 5.0])]


def scaled(x: Tensor, scale: Any = 1.0, mask: Tensor | None = None, **rest: Any) -> Tensor:
    y = x * scale
    if mask is not None:
        y = y + mask
    if "extra" in rest:
        y = y + rest["extra"]
    for name, _ in rest.items():
        y = y * 2 if name == "twice" else y
    return y


def handing_on(*args: Any, **kwargs: Any) -> Tensor:
    if "old" in kwargs:
        kwargs["mask"] = kwargs.pop("old")
    return scaled(*args, **kwargs)


class Handing(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None, **rest: Any) -> Tensor:
        return handing_on(x, mask=mask, **rest)


MODULE = Handing()


def options(x: Tensor) -> dict[str, Any]:
    made: dict[str, Any] = {"scale": 2.0}
    if x.sum() > 0:
        made["mask"] = x * 3
    if x[0] > 0:
        made["extra"] = x * 5
    return made


def of_a_function(x: Tensor) -> Any:
    return scaled(x, **options(x))


def through_another(x: Tensor) -> Any:
    return handing_on(x, **options(x))


def under_an_old_name(x: Tensor) -> Any:
    made: dict[str, Any] = {}
    if x.sum() > 0:
        made["old"] = x * 3
    return handing_on(x, **made)


def of_a_module(x: Tensor) -> Any:
    return MODULE(x, **options(x))


def of_torch(x: Tensor) -> Any:
    made: dict[str, Any] = {}
    if x.sum() > 0:
        made["alpha"] = 3
    return torch.add(x, x, **made)


class Kept:
    def __init__(self, value: Tensor, by: Any = 1) -> None:
        self.value = value * by


def of_a_class(x: Tensor) -> Any:
    made = {}
    if x.sum() > 0:
        made["by"] = x
    return Kept(x, **made).value


def of_a_lambda(x: Tensor) -> Any:
    made = {}
    if x.sum() > 0:
        made["a"] = 2
    return (lambda **rest: len(rest))(**made), len(dict(b=1, **made))


def beside_others(x: Tensor) -> Any:
    return scaled(x, **{"scale": 3.0, **options(x)}, twice=x)


FUNCTIONS = [
    *(of_a_function, through_another, under_an_old_name, of_a_module, of_torch, of_a_class, of_a_lambda),
    beside_others,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_each_path_calls_with_its_own(function: Any) -> None:
    agree(function, *INPUTS)
