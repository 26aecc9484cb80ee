"""What operations may raise by themselves, where a handler waits for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.passes import pipeline
from tests.cases.compare import assert_same
from tests.front_ends import bytecode  # noqa: F401  # a fixture

X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]])
CALLS = (X, -X, X * 9, X[:1], torch.zeros(0, 2), torch.zeros(5, 2))
OPEN = [sg.InputSpec([None, 2])]


def tried(operation: Callable[[Tensor], Any], kind: type[Exception] = RuntimeError) -> Callable[[Tensor], Any]:
    """A function that does something in a ``try``, besides raising."""

    def function(x: Tensor) -> Any:
        try:
            if x.sum() > 5:
                raise ValueError("large")
            if x.sum() < 0:
                raise kind("small")
            y = operation(x)
        except (ValueError, kind):
            y = x - 1
        return y.sum()

    return function


def sliced(x: Tensor) -> Tensor:
    return x[1:] * 2


def sliced_by_numbers(x: Tensor) -> Tensor:
    n = int(x.abs().sum())
    return x[n // 2 : n, None, ..., :-1]


def of_one_tensor(x: Tensor) -> Tensor:
    y = x.exp().transpose(0, 1).softmax(0).sum(1, keepdim=True).flatten().to(torch.float64)
    return (y.cumsum(0) + x.numel() + x.size(0) + x.T.mean()).to(x.dtype)


def of_two_that_fit(x: Tensor) -> Tensor:
    return torch.where(x > x.clamp(min=0.5), x * x.relu(), x[:, :1]) + x.sum(0) - x.mean().item()


def masked(x: Tensor) -> Tensor:
    return x.masked_fill(x > 1, 0.0) * (x > 0).to(x.dtype)


def of_results(x: Tensor) -> Tensor:
    values, order = x.sort(0)
    return values[:2].sum() + order.sum()


def in_a_text(x: Tensor) -> Tensor:
    if x.sum() > 7:
        raise ValueError(f"larger than {x.sum().item()}")
    return x


def in_order(x: Tensor) -> Tensor:
    first, *_ = sorted([x.sum().item(), x.exp().sum().item()])
    return x * first


NEVER = [sliced, sliced_by_numbers, of_one_tensor, of_two_that_fit, masked, of_results, in_a_text, in_order]


@pytest.mark.parametrize("operation", NEVER, ids=lambda each: each.__name__)
def test_what_never_raises_may_stand_in_a_try(operation: Callable[[Tensor], Any], tmp_path: Path) -> None:
    function = tried(operation)
    sg.save(function, tmp_path / "program.pt2", args=(X,), input_spec=OPEN)
    loaded = sg.load(tmp_path / "program.pt2")
    for x in CALLS:
        assert_same(function(x), loaded(x))


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("operation", [sliced, of_two_that_fit], ids=lambda each: each.__name__)
def test_through_bytecode(operation: Callable[[Tensor], Any]) -> None:
    pipeline.run(sg.export(tried(operation), (X,), input_spec=OPEN))


def by_number(x: Tensor) -> Tensor:
    return x[int(x.abs().sum()) % 3]


@pytest.mark.parametrize("kind", [KeyError, RuntimeError])
def test_what_raises_something_else_may_stand_there(kind: type[Exception], tmp_path: Path) -> None:
    function = tried(by_number, kind)
    sg.save(function, tmp_path / "program.pt2", args=(X,))
    loaded = sg.load(tmp_path / "program.pt2")
    for x in (X, -X, X * 9):
        assert_same(function(x), loaded(x))


# ---- refusals
def by_tensor(x: Tensor) -> Tensor:
    return x[x[:, 0].long()]


def inverted(x: Tensor) -> Tensor:
    return torch.linalg.inv(x[:, None] * x[:, :, None])


def added(x: Tensor) -> Tensor:
    return x[1:] + x[: int(x.abs().sum())]


def largest(x: Tensor) -> Tensor:
    return x.max()


def divided(x: Tensor) -> Tensor:
    return x.long() // x.long()


def of_an_endless_order(x: Tensor) -> Tensor:
    return x.norm(math.inf)


def of_a_negative_order(x: Tensor) -> Tensor:
    return x.norm(p=-1)


def to_a_negative_power(x: Tensor) -> Tensor:
    return x.long() ** -1


@pytest.mark.parametrize(
    ("operation", "kind", "reason"),
    [
        (by_number, IndexError, "getitem in a try may itself raise IndexError, .*: an index .* may be out of bounds"),
        (by_tensor, IndexError, "an index that only the run knows may be out of bounds"),
        (inverted, torch.linalg.LinAlgError, "linalg_inv in a try may itself raise .*: there are matrices"),  # type: ignore[attr-defined]
        (added, RuntimeError, "add in a try may .* RuntimeError or ValueError, .*: sizes .* may not fit"),
        (largest, RuntimeError, "max in a try .*: a tensor whose size only the run knows may have no element"),
        (divided, RuntimeError, "floordiv in a try .*: a divisor may be zero"),
        (of_an_endless_order, RuntimeError, "norm in a try .*: of no elements there is no norm of this order"),
        (of_a_negative_order, RuntimeError, "norm in a try .*: of no elements there is no norm of this order"),
        (to_a_negative_power, RuntimeError, "pow in a try .*: a whole number may have a negative exponent"),
    ],
)
def test_the_reason_is_told(
    operation: Callable[[Tensor], Any], kind: type[Exception], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(sg.ExportError, match=reason) as raised:
        sg.save(tried(operation, kind), tmp_path / "program.pt2", args=(X,), input_spec=OPEN)
    assert raised.value.reason.code == "SG402"
