"""Truth values of the run that torch's functions take as plain ones: `descending`, `is_causal`, `largest`, …"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.unit.trace.agreement import agree

X = torch.tensor([3.0, -1.0, 2.0])


def ordered(x: Tensor) -> Any:
    up = bool(x.sum() > 0)
    return torch.sort(x, descending=up), torch.topk(x, 2, largest=up).values, torch.argsort(x, descending=not up)


def attended(x: Tensor) -> Any:
    """As transformers asks for the causal kernel where it has no mask."""
    q = x[None, :, None] * torch.arange(4.0)
    mask = None if x.sum() > 0 else torch.ones(3, 3, dtype=torch.bool)
    causal = mask is None and q.shape[1] > 1
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=causal)


def beside_one_of_two_masks(x: Tensor) -> Any:
    q = x[None, :, None] * torch.arange(4.0)
    mask = torch.ones(3, 3, dtype=torch.bool) if x.sum() > 0 else torch.zeros(1, 3, 3)
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=bool(x.max() > 9))


def two_of_them(x: Tensor) -> Any:
    first, second = bool(x.sum() > 0), bool(x[0] > 2)
    return torch.searchsorted(torch.sort(x, descending=False).values, x, right=first), torch.std(x, unbiased=second)


def as_numbers(x: Tensor) -> Any:
    flag = bool(x.sum() > 0)
    return x * flag, torch.full((2,), flag), torch.tensor(flag), torch.where(x > 0, flag, False)


FUNCTIONS = [ordered, attended, beside_one_of_two_masks, two_of_them, as_numbers]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_each_truth(function: Any) -> None:
    agree(function, (X,), (-X,), (X - 2,), (X / 4,))
