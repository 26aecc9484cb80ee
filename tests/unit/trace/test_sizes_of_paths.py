"""What an operation on one path tells of a size does not hold on others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.guards import SizeGuard
from tests.unit.trace.agreement import agree
from tests.unit.trace.sizes_of_paths import EXAMPLE, FUNCTIONS, OF_ANY_SIZE, OF_EIGHT

OPEN = [sg.InputSpec([None])]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_program_for_every_number_of_elements(function: Callable[[Tensor], Any]) -> None:
    agree(function, *OF_EIGHT)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_program_for_every_size_of_the_argument(function: Callable[[Tensor], Any]) -> None:
    agree(function, *OF_EIGHT, *OF_ANY_SIZE, input_spec=OPEN)


def caught(s: Tensor) -> Any:
    kept = s[s > 0.5]
    try:
        top = kept[0]
    except IndexError:
        top = torch.tensor(-5.0)
    return top


def test_an_element_that_is_not_there_is_caught() -> None:
    agree(caught, *OF_EIGHT)


def test_the_example_may_be_too_small_for_an_arm() -> None:
    def fourth(s: Tensor) -> Tensor:
        return s[3] if s.shape[0] > 3 else s.sum()

    agree(fourth, torch.ones(2), torch.arange(5.0), torch.ones(3), torch.ones(0), torch.arange(4.0), input_spec=OPEN)


def test_no_guard_asks_for_an_element() -> None:
    """Of the size it is asked alone whether it is 1, for a size of 1 broadcasts."""
    program = sg.to_static(FUNCTIONS[0], input_spec=OPEN).get_program(EXAMPLE)
    (guard,) = [str(guard) for guard in program.guards if isinstance(guard, SizeGuard)]
    assert guard.endswith(" != 1")
