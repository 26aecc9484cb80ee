"""Searching and counting."""

import torch
from torch import Tensor

from tests.cases.case import case
from tests.cases.tensors import f, i64


def binary_search(values: Tensor, wanted: Tensor) -> int:
    low, high = 0, values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


case(binary_search, [(f(1, 3, 5, 7, 9, 11), f(v)) for v in (6, 0, 20, 7)])


def collatz(n: Tensor):
    steps, peak = 0, n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        if n > peak:
            peak = n
        steps += 1
    return steps, peak


case(collatz, [(i64(6),), (i64(27),), (i64(1),)])


def smallest_factor(n: Tensor) -> Tensor:
    divisor = torch.full_like(n, 2)
    while divisor * divisor <= n:
        if n % divisor == 0:
            factor = divisor
            break
        divisor = divisor + 1
    else:
        factor = n
    return factor


case(smallest_factor, [(i64(91),), (i64(97),), (i64(2),), (i64(15),)])


def first_saturated_row(x: Tensor, limit: float = 3.0):
    for index, row in enumerate(x):
        if row.abs().max() >= limit:
            found = row / row.abs().max()
            break
    else:
        index, found = -1, x.mean(dim=0)
    return index, found


case(
    first_saturated_row,
    [(f([[1, 2], [4, -8], [9, 9]]),), (f([[1, 2], [0, 1], [2, 2]]),), (f([[3, 3], [0, 1], [2, 2]]),)],
)


def keep_positive_rows(x: Tensor) -> Tensor:
    kept = [row for row in x if row.sum() > 0]
    return torch.stack(kept) if kept else x[:0]


case(keep_positive_rows, [(f([[1, 2], [-4, 1], [3, 3]]),), (f([[1, 2], [4, 1], [3, 3]]),), (-torch.ones(3, 2),)])
