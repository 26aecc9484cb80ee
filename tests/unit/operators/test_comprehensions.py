from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from stillgraph.operators.consumers.comprehensions import dict_of, list_of, set_of
from tests.unit.trace.agreement import N, P, agree


def test_plain() -> None:
    assert list_of(range(4), lambda x: x * 2, lambda x: x % 2) == [2, 6]
    assert list_of("ab", str.upper) == ["A", "B"]
    assert set_of([1, 1, 2], lambda x: -x) == {-1, -2}
    assert dict_of(enumerate("ab"), lambda pair: (pair[1], pair[0]), lambda pair: pair[0]) == {"b": 1}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [r * 2 for r in x],
        lambda x: [v for v in (x, 1, None) if v is not None],
        lambda x: [[a * b for a in (1, 2)] for b in (x.sum().item(), 3)],
        lambda x: [a + b for a in (1, 2) for b in (x, 1)],
        lambda x: {i: r * 2 for i, r in enumerate(x)},
        lambda x: {i % 2 for i in range(4)},
        lambda x: [v * 2 if v > 0 else -v for v in x],
        lambda x: tuple(v.item() for v in x),
        lambda x: sum(i * x for i in range(3)),
        lambda x: [(lambda y: y * i)(x) for i in range(2)],
        lambda x: [f(x) for f in [lambda y, i=i: y * i for i in range(3)]],
        lambda x: dict(zip("abc", x)),
        lambda x: [i for i in range(x.dim() + 2) if i],
    ],
)
def test_in_a_capture(function: Any) -> None:
    agree(function, P, N)


def with_their_indices(x: Tensor) -> Any:
    return [(i, v * 2) for i, v in enumerate(x) if v > 1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [v for v in x if v > 1],
        lambda x: [v + 1 for v in x[x > 0]],
        with_their_indices,
        lambda x: [w for w in [v for v in x if v > 0] if w > 2],
    ],
)
def test_a_length_that_only_the_run_knows(function: Any) -> None:
    agree(function, P, N, P + 1)


def kept_by_index(x: Tensor) -> Any:
    kept = {i: v for i, v in enumerate(x) if v > 1}
    return kept, {k: v * 2 for k, v in kept.items() if k}, {-k for k in kept}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: {i for i in range(3) if x[i] > 1},
        kept_by_index,
        lambda x: {(i, j): 1 for i in range(2) for j in range(2)},
        lambda x: [(i, j) for i in range(3) for j in range(i) if x[i] > x[j]],
        lambda x: [a * b for a in x if a > 1 for b in x if b > a],
        lambda x: [b for a in (x, -x) for b in a if b > 1],
    ],
)
def test_filters_that_only_the_run_knows(function: Any) -> None:
    agree(function, P, N, P * torch.tensor([1.0, -1.0, 1.0]))


@pytest.mark.parametrize(
    "function", [lambda x: {int(v) for v in x if v > 1}, lambda x: {int(v): v for v in x if v > 1}]
)
def test_keys_that_only_the_run_knows(function: Any) -> None:
    agree(function, P, P * torch.tensor([1.0, -1.0, 1.0]))
