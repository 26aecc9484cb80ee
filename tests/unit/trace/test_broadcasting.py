"""Operations on tensors of unknown sizes, of which one may be stretched to the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

WEIGHTS = torch.arange(4.0)
INPUTS = [
    *(torch.tensor([1.0, 2, 3, 4]), torch.tensor([1.0, 0, 0, 0]), torch.tensor([0.6, 0, 8, 0])),
    *(torch.zeros(4), torch.tensor([1.0, 1, 0, 0])),
]


def with_a_known_size(s: Tensor) -> Any:
    s = s[s > 0.5]
    y = s + WEIGHTS
    return y.sum() * s.shape[0], s.numel() == 4, y.shape


def of_two_unknown_sizes(s: Tensor) -> Any:
    s, t = s[s > 0.5], s[s > 0.7]
    y = s * t
    return y, len(s) == len(t), len(y), len(s), len(t)


def of_equal_sizes(s: Tensor) -> Any:
    t, doubled = s[s > 0.5], s[s > 0.5] * 2
    y = t * doubled + t
    return y, torch.stack([y, t]).sum(0), len(y) == len(t), torch.where(y > 3, t, doubled)


def into_a_known_size(s: Tensor) -> Any:
    total, kept = WEIGHTS.clone(), s[s > 0.5]
    total += kept
    return total, len(kept) == 4, kept.numel(), total.shape


def into_an_unknown_size(s: Tensor) -> Any:
    kept, some = s[s > 0.5] * 1, s[s > 0.9]
    kept *= some
    return kept, len(kept) == len(some), len(kept), len(some)


def of_several_results(s: Tensor) -> Any:
    kept = s[s > 0.5]
    left, right = torch.broadcast_tensors(kept, WEIGHTS)
    return left, right, len(kept) == 4, left.shape, torch.cartesian_prod(kept, WEIGHTS).shape


def in_one_arm(s: Tensor) -> Any:
    s = s[s > 0.5]
    y = (s * WEIGHTS).sum() if len(s) == 4 else s.sum()
    return y, s.numel() == 4, s.shape[0] == 4


def of_two_masks(s: Tensor) -> Any:
    both = (s[s > 0.5] > 1) & (s[s > 0.7] > 2)
    return both, torch.where(both, 1.0, 2.0), len(both)


def expanded(s: Tensor) -> Any:
    m = s[:1] if s.sum() > 2 else s * 2
    y = m.expand(s.shape[0])
    return y, m.shape[0] == s.shape[0], len(m + 1), len(y)


def expanded_by_others(s: Tensor) -> Any:
    kept = s[s > 0.9]
    a, b = torch.broadcast_to(kept, (3, len(kept))), kept.expand(size=(2, -1))
    return a, b, a.shape, b.shape, len(kept) == 4


@pytest.mark.parametrize(
    "function",
    [
        *(with_a_known_size, of_two_unknown_sizes, of_equal_sizes, into_a_known_size, into_an_unknown_size),
        *(of_several_results, in_one_arm, of_two_masks, expanded, expanded_by_others),
    ],
)
def test_nothing_is_said_of_the_sizes(function: Callable[[Tensor], Any]) -> None:
    agree(function, *INPUTS)
