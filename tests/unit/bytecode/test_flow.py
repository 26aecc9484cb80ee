"""Where control goes in a code object: what a loop's test is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.bytecode.code.flow import flow_of
from tests.front_ends import bytecode

__all__ = ["bytecode"]  # the fixture


def chained(t: Any, n: Any) -> Any:
    count = 0
    while (-1 < t < 1) and (-3 % 2 == 0):
        count += 1
    return count


def chained_and_left(s: Tensor, t: Tensor, v: Tensor, n: Any) -> Any:
    if int(s > 0):
        n += n % 5
    if ((s > 0) and n) and (n < s):
        v = torch.relu(v)
    count = 0
    while ((-1 < t < 1) and (-3 % 2 == 0)) and ((n < 2) or (t > 0)):
        count += 1
        if count > 2:
            break
    return s, t, v, n, count


def test_a_test_leaves_the_stack_as_it_is() -> None:
    for function in (chained, chained_and_left):
        flow = flow_of(function.__code__)
        for loop in flow.loops.values():
            if loop.test is not None:
                assert flow.depth[loop.header] == flow.depth[loop.test.holds] == flow.depth[loop.test.ends]


@pytest.mark.usefixtures("bytecode")
def test_a_loop_with_a_chained_comparison_for_its_test() -> None:
    static = sg.to_static(chained_and_left, backend="eager")
    for s, t in ((-0.5, -2.0), (-0.5, 0.0), (1.0, -2.0), (1.0, 0.5)):
        call = torch.tensor(s), torch.tensor(t), torch.ones(3), 4
        torch.testing.assert_close(static(*call), chained_and_left(*call))
    assert len(static.programs) == 1


def half_an_operation(s: Tensor, t: Tensor) -> Tensor:
    return t - (s if (s <= 0) or (-1 < s < 1) else -s)


@pytest.mark.usefixtures("bytecode")
def test_a_chained_comparison_while_a_value_waits_on_the_stack() -> None:
    """Its way past the second half meets the others twice; where the operation goes on is behind that."""
    static = sg.to_static(half_an_operation, backend="eager")
    for s in (-0.5, 0.5, 2.0):
        call = torch.tensor(s), torch.tensor(1.0)
        torch.testing.assert_close(static(*call), half_an_operation(*call))
    assert len(static.programs) == 1
