"""Constants that paths leave, behind a question that decides between them: what a path cannot be, it is not joined as."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import N, P, agree

CALLS = (P, N, torch.zeros_like(P))


def named(x: Tensor) -> Any:
    name = None
    if x.sum() > 0:
        name = "pos"
    return name


def filled_in(x: Tensor) -> Any:
    name = named(x)
    if name is None:
        name = "zero"
    return name.upper()


def or_another(x: Tensor) -> Any:
    return (named(x) or "zero").upper()


def chosen(x: Tensor) -> Any:
    name = named(x)
    return name.upper() if name else "none"


def returned_early(x: Tensor) -> Any:
    name = named(x)
    if name is not None:
        return name.upper()
    return "none"


def of_three(x: Tensor) -> Any:
    name = None
    if x.sum() > 0:
        name = "pos"
    elif x.sum() < 0:
        name = "neg"
    if name is None:
        name = "zero"
    return {"pos": 1, "neg": 2, "zero": 3}[name], name + "!"


def asked_by_a_tensor(x: Tensor) -> Any:
    if x.sum() > 0:
        name, is_known = "a", x.sum() * 0 == 0
    else:
        is_known = x.sum() * 0 == 1
    if is_known:
        pass
    else:
        name = "b"
    return name


def by_a_flag(x: Tensor) -> Any:
    is_known = False
    if x.sum() > 0:
        name, is_known = "a", True
    if not is_known:
        name = "b"
    return name * 2


@pytest.mark.parametrize(
    "function",
    [filled_in, or_another, chosen, returned_early, of_three, asked_by_a_tensor, by_a_flag],
    ids=lambda function: function.__name__,
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
