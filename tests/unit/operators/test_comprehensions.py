from __future__ import annotations

from typing import Any

import pytest
import torch

from stillgraph.operators.comprehensions import dict_of, list_of, set_of
from tests.unit.trace.agreement import N, P, agree, refusal


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


def test_a_filter_that_only_the_run_knows_is_refused() -> None:
    error = refusal(lambda x: [v for v in x if v > 1], P)
    assert error.reason.code == "SG206"
    assert "filter" in str(error)


def test_a_length_that_only_the_run_knows_is_refused() -> None:
    assert refusal(lambda x: [v + 1 for v in x[x > 0]], torch.ones(2)).reason.code == "SG206"
