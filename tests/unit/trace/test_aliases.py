"""Which arguments are one and the same object: guarded where the code can tell, without a further attempt."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def compares(x: Any, y: Any) -> Tensor:
    return x * 2 if x is y else x - y


def writes(x: Tensor, y: Tensor) -> Tensor:
    z = x * 1
    x.add_(1)
    return z + y


def compares_pairs(x: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor]) -> Tensor:
    return x[0] * 2 if x is y else x[0] - y[1]


WHOLE = [pytest.param(True, id="whole"), pytest.param(False, id="segments")]


def attempts(static: Any) -> list[int]:
    return sorted(program.record.attempts for program in static.programs)


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("function", [compares, writes])
def test_arguments_that_are_several_take_one_attempt(function: Any, whole: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=whole)
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    assert torch.equal(static(x.clone(), y), function(x.clone(), y))
    assert attempts(static) == [1]


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("function", [compares, writes])
def test_one_passed_twice_gets_a_program_of_its_own(function: Any, whole: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=whole)
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    static(x.clone(), y)
    both, expected = x.clone(), x.clone()
    assert torch.equal(static(both, both), function(expected, expected))
    assert torch.equal(both, expected)
    assert attempts(static) == [1, 2]
    assert torch.equal(static(x.clone(), y), function(x.clone(), y))
    assert static.cache_info().programs == 2


@pytest.mark.parametrize("whole", WHOLE)
def test_tuples_are_told_apart(whole: bool) -> None:
    static = sg.to_static(compares_pairs, backend="eager", full_graph=whole)
    x, y = (torch.tensor([1.0]), torch.tensor([2.0])), (torch.tensor([3.0]), torch.tensor([5.0]))
    for first, second in ((x, y), (x, x), (x, (x[0], x[1])), (x, y)):
        assert torch.equal(static(first, second), compares_pairs(first, second))
    assert attempts(static)[0] == 1  # of ``x`` twice there are more


def test_the_guards_are_those_of_an_attempt_that_knew() -> None:
    static = sg.to_static(compares, backend="eager")
    static(torch.zeros(2), torch.ones(2))
    kinds = [type(guard).__name__ for guard in static.programs[0].guards]
    kinds = [kind for kind in kinds if kind in ("AliasGuard", "TensorGuard")]
    assert kinds == ["TensorGuard", "AliasGuard", "TensorGuard"]
    pairs = sg.to_static(compares_pairs, backend="eager")
    pairs((torch.zeros(2), torch.zeros(2)), (torch.ones(2), torch.ones(2)))
    kinds = [type(guard).__name__ for guard in pairs.programs[0].guards]
    assert kinds.count("AliasGuard") == 6  # of four tensors
    assert "ApartGuard" in kinds  # of two pairs
