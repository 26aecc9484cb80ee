"""Lists of lists of whole numbers, of which only the run knows how many there are and how long they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree, refusal

CALLS = (*(torch.ones(2) * size for size in (2.0, 0.0, 1.0, 3.0)), torch.tensor([3.0, 1.0]))


def repeated(x: Tensor) -> Any:
    rows = []
    for i in range(int(x.sum())):
        rows.append([i] * i)
    return rows


def comprehended(x: Tensor) -> Any:
    return [[j * i for j in range(i)] for i in range(int(x.sum()))]


def ranges(x: Tensor) -> Any:
    return [list(range(i)) for i in range(int(x.sum()))]


def batches(x: Tensor) -> Any:
    out, current = [], []
    for i in range(int(x.sum())):
        current.append(i)
        if len(current) == 2:
            out.append(current)
            current = []
    return out, current


def rows_of_a_sequence(x: Tensor) -> Any:
    """As `batches`, with a fixed number of iterations: where a row is put in, another one goes on."""
    rows, row = [], []
    for v in x:
        if v > 1:
            row.append(v)
        else:
            rows.append(row)
            row = []
    rows.append(row)
    return [len(each) for each in rows]


def kept_and_put_in(x: Tensor) -> Any:
    rows: list[list[int]] = []
    row: list[int] = []
    for i in range(int(x[0])):
        row.append(i)
        if x[i % 2] > 2:
            rows.append(row)
        elif x[i % 2] > 1:
            row = []
    return rows, row


def batches_of_one(x: Tensor) -> Any:
    out: list[list[int]] = []
    current: list[int] = []
    for i in range(int(x.sum())):
        current.append(i)
        if len(current) == 1:
            out.append(current)
            current = []
    return out


def counted_by_while(x: Tensor) -> Any:
    rows, i = [], 0
    while x.sum() > i:
        row, k = [], 0
        while x.sum() > i + k:
            row.append(k)
            k += 1
        rows.append(row)
        i += 1
    return rows, sum(len(row) for row in rows)


def in_dicts(x: Tensor) -> Any:
    rows = []
    for i in range(int(x.sum())):
        rows.append({"a": [i] * i, "b": (i, [])})
    return rows


def texts(x: Tensor) -> Any:
    rows, flat = [], []
    for i in range(int(x.sum())):
        rows.append(["a"] * i)
        flat.append("b")
    return rows, flat


def summed(x: Tensor) -> Any:
    return sum(sum(row) for row in [[1] * size for size in range(int(x.sum()))])


FUNCTIONS = [
    *(repeated, comprehended, ranges, batches, batches_of_one, counted_by_while, in_dicts, texts, summed),
    rows_of_a_sequence,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


def test_what_goes_on_where_it_was_put_in() -> None:
    """On one path ``row`` goes on, and is among ``rows``."""
    assert refusal(kept_and_put_in, torch.tensor([3.0, 2.0])).reason.code == "SG305"
