"""Scenarios: code around functions that gives the same whether the functions are static or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.verify import verify
from tests.cases.compare import assert_same

Wrap = Callable[[Any], Any]

P, N = (1.0, 2.0, 3.0), (-1.0, -2.0, -3.0)


def V(*values: float, g: bool = True) -> Tensor:
    """A vector in float64, which requires a gradient unless told otherwise."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=g)


def as_in_eager(scenario: Callable[[Wrap], Any]) -> Callable[[], None]:
    """A test: the scenario gives with static functions what it gives with the functions as they are.

    Args:
        scenario: is given what makes a function or module static, or leaves it as it is.
    """

    def test() -> None:
        made: list[Any] = []

        def to_static(target: Any) -> Any:
            made.append(sg.to_static(target, backend="eager"))
            return made[-1]

        torch.manual_seed(0)
        expected = scenario(lambda target: target)
        torch.manual_seed(0)
        actual = scenario(to_static)
        assert_same(expected, actual)
        assert made
        for static in made:
            held = static.forward if isinstance(static, torch.nn.Module) else static
            assert held.cache_info().programs
            for program in held.programs:
                verify(program)

    test.__name__ = test.__qualname__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


def refused(function: Any, *args: Any) -> str:
    """The text with which a call is refused."""
    try:
        sg.to_static(function, backend="eager")(*args)
    except sg.CaptureError as error:
        return str(error)
    raise AssertionError("the call is not refused")
