"""All variables at once: `locals()`, `vars()` and `dir()` of a function whose branches assign some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree


def in_both_arms(x: Tensor) -> Any:
    if x.sum() > 0:
        last = x * 2
    else:
        last = x  # shown below
    return sorted(vars()), dir(), sorted(locals()), x + 1


def in_an_arm_that_python_decides(x: Tensor, more: bool = True) -> Any:
    if more:
        last = 3  # shown below
    return sorted(locals()), dir(), x + 1


def evaluated(x: Tensor) -> Any:
    if x.sum() > 0:
        factor = 3
    else:
        factor = 4  # noqa: F841  # used below
    return eval("x * factor")


def in_one_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        last = x * 2  # shown below
    return sorted(locals()), x + 1


def a_number_in_one_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        last = 3  # noqa: F841  # shown below
    return sorted(vars()), x + 1


def a_text_in_one_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        last = "positive"  # noqa: F841  # shown below
    return dir(), x + 1


def in_a_loop(x: Tensor) -> Any:
    for number in range(int(x.relu().sum())):
        last = x * number  # noqa: F841  # shown below
    return sorted(vars()), x + 1


@pytest.mark.parametrize("function", [in_both_arms, in_an_arm_that_python_decides, evaluated])
def test_those_that_are_assigned_on_every_path(function: Callable[..., Any]) -> None:
    agree(function, P, N)


MAYBE = [in_one_arm, a_number_in_one_arm, a_text_in_one_arm, in_a_loop]


@pytest.mark.parametrize("function", MAYBE)
@pytest.mark.parametrize("x", [P, N], ids=["some", "none"])
def test_those_that_only_the_run_knows_of_are_refused(function: Callable[..., Any], x: Tensor) -> None:
    name = "number" if function is in_a_loop else "last"
    with pytest.raises(sg.CaptureError, match=f"only the run knows whether '({name}|last)' has a value") as caught:
        sg.to_static(function, backend="eager")(x)
    assert caught.value.reason.code == "SG301"


@pytest.mark.parametrize("function", MAYBE)
def test_those_that_only_the_run_knows_of_are_pythons_in_segments(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x in (P, N, P, N):
        names, value = static(x)
        expected_names, expected = function(x)
        assert names == expected_names
        assert torch.equal(value, expected)
