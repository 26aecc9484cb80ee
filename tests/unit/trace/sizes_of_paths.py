"""Functions in which one path relies on a size that only the run knows, and another asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

WEIGHTS = torch.arange(4.0)


def first_or_zero(s: Tensor) -> Any:
    s = s[s > 0.5]
    return (s[0] if len(s) else torch.zeros(())), len(s) == 0


def by_count(s: Tensor) -> Any:
    s = s[s > 0.5]
    if len(s) >= 2:
        return s[0] + s[1]
    elif len(s) == 1:
        return s[0] * 100
    return torch.tensor(-1.0)


def found_or_sum(s: Tensor) -> Any:
    found = torch.nonzero(s > 0.5).squeeze(1)
    if found.numel():
        return s[found[-1]], True
    return s.sum(), found.numel() > 0


def asked_twice(s: Tensor) -> Any:
    found = s.nonzero()[:, 0]
    if found.numel() >= 2:
        a, b = found[0], found[1]
    else:
        a = b = torch.tensor(-1)
    if found.numel() < 2:
        a = a - 10
    return a, b


def one_fewer(s: Tensor) -> Any:
    count = int((s > 0.5).sum())
    made = torch.zeros(count - 1) if count > 0 else torch.zeros(0)
    return made, count == 0, count


def in_a_loop(s: Tensor) -> Any:
    s, total = s[s > 0.5], torch.zeros(())
    for i in range(s.shape[0]):
        total = total + s[i] * i
    return total, s.shape[0] == 0


def until_none_is_left(s: Tensor) -> Any:
    kept, total = s[s > 0.5], torch.zeros(())
    while kept.numel() > 0 and kept[0] > 1:
        total, kept = total + kept[0], kept[1:]
    return total, kept, kept.numel() == 0


def of_four(s: Tensor) -> Any:
    s = s[s > 0.5]
    if s.numel() == 4:
        return (s * WEIGHTS).sum()
    return s.sum() * 10


def of_equal_sizes(s: Tensor) -> Any:
    s = s[s > 0.5]
    t = s[s > 1.5]
    y = (s * t).sum() if s.numel() == t.numel() else s.sum()
    return y, len(s) == len(t)


def empty_or_not(s: Tensor) -> Any:
    if s.shape[0] == 0:
        return torch.tensor(-1.0)
    return s.sum() * 2


def empty_later(s: Tensor) -> Any:
    y = s * 2 + s.flip(0)
    z = y.reshape(-1, 1).t().contiguous()
    if s.shape[0] == 0:
        return torch.tensor(-1.0), z
    return y.sum() * 2, z


def fourth_or_none(s: Tensor) -> Any:
    y = s.sum() * 0
    if s.shape[0] > 3:
        y = s[3]
    if s.shape[0] < 3:
        y = y - 1
    return y


def largest(s: Tensor) -> Any:
    mean = s.mean() if s.shape[0] != 0 else torch.zeros(())
    return mean, (s.max() if s.shape[0] > 0 else mean), s.shape[0] == 0, s.numel() == 1


def raises_first(s: Tensor) -> Any:
    kept = s[s > 0.5]
    if len(kept) == 0:
        raise ValueError("nothing is kept")
    return kept[0], len(kept) == 0, len(kept) > 0


def at_most_three(s: Tensor) -> Any:
    kept, out = s[s > 0.5], []
    for i in range(3):
        if len(kept) <= i:
            break
        out.append(kept[i])
    return torch.stack(out) if out else torch.zeros(0), len(kept) >= 3


FUNCTIONS: list[Callable[[Tensor], Any]] = [
    *(first_or_zero, by_count, found_or_sum, asked_twice, one_fewer, in_a_loop, until_none_is_left, of_four),
    *(of_equal_sizes, empty_or_not, empty_later, fourth_or_none, largest, raises_first, at_most_three),
]

EXAMPLE = torch.tensor([0.6, 2, 3, 4, 0, 0, 0, 0])
OF_EIGHT = [
    *(torch.ones(8), torch.zeros(8), torch.tensor([0.0, 2, 0, 3, 0, 0, 0, 0]), torch.eye(8)[3] * 2),
    *(EXAMPLE, torch.tensor([0.6, 2, 3, 0, 0, 0, 0, 0]), torch.tensor([0.7, 0, 0, 0, 0, 0, 0, 0]), torch.arange(8.0)),
]
OF_ANY_SIZE = [torch.arange(float(size)) + 0.2 for size in (2, 3, 4, 5, 9, 0)]
