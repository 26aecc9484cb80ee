"""Orders that only the run knows, against Python's own sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.kernels.sorting import order_to_tensors
from stillgraph.program.verify import verify
from tests.unit.passes.captured import run

X = torch.tensor([3.0, 1.0, 2.0, 1.0])
CALLS = (X, -X, X * torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.zeros(4))


def by_value(x: Tensor) -> Tensor:
    return torch.stack(sorted(x.unbind()))


def reversed_by_key(x: Tensor) -> Tensor:
    rows = [torch.stack([value, value * 0 + place]) for place, value in enumerate(x)]
    rows.sort(key=lambda row: row[0], reverse=True)
    return torch.stack(rows)


def by_two_keys(x: Tensor) -> Tensor:
    rows = [torch.stack([value, value * 0 + place]) for place, value in enumerate(x)]
    return torch.stack(sorted(rows, key=lambda row: (row[0] > 1, -row[1])))


def by_numbers(x: Tensor) -> list[int]:
    return sorted(int(value) for value in x)


def of_any_length(x: Tensor) -> Tensor:
    kept = [value for value in x if value > -2]
    return torch.stack([*sorted(kept, reverse=True), x[0]])


def of_any_length_by_key(x: Tensor) -> Tensor:
    kept = [torch.stack([value, value * 0 + place]) for place, value in enumerate(x) if value > -2]
    kept.sort(key=lambda row: row[0])
    return torch.stack([*kept, x[:2]])


@pytest.mark.parametrize(
    "function", [by_value, reversed_by_key, by_two_keys, by_numbers, of_any_length, of_any_length_by_key]
)
def test_the_order_is_pythons(function: Callable[..., Any]) -> None:
    program = sg.export(function, (X,))
    verify(order_to_tensors(program)) if function is by_value else None
    lowered = pipeline.run(program)
    verify(lowered)
    for x in CALLS:
        want = function(x)
        torch.testing.assert_close(run(lowered, (x,)), want if isinstance(want, list) else [want])


def test_what_is_not_a_number_fails() -> None:
    lowered = pipeline.run(sg.export(by_value, (X,)))
    with pytest.raises(RuntimeError, match="ValueError: a value that is not a number is sorted"):
        run(lowered, (X * torch.nan,))


def by_mixed(x: Tensor) -> list[Any]:
    return sorted([int(x[0]), float(x[1])])


def by_unequal_tuples(x: Tensor) -> Tensor:
    keys = iter([(x[0],), (x[1], x[2])])
    return sorted([x[0], x[1]], key=lambda _: next(keys))[0]


@pytest.mark.parametrize(
    ("function", "text"), [(by_mixed, "all of one dtype"), (by_unequal_tuples, "tuples of several lengths")]
)
def test_keys_that_are_no_tensor_are_refused(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(ExportError, match=text) as caught:
        pipeline.run(sg.export(function, (X,)))
    assert caught.value.reason.code == "SG402"
