"""A program keeps nothing of the user's alive."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def test_an_optimizer_that_a_program_steps_is_let_go() -> None:
    model = torch.nn.Linear(2, 2, bias=False)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

    def step() -> None:
        optimizer.step()

    static = sg.to_static(step, backend="eager")
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(2)).sum().backward()
        before = model.weight.detach().clone()
        static()
        assert not torch.equal(before, model.weight)
    assert static.cache_info().programs >= 1
    optimizer, gone = None, weakref.ref(optimizer)
    gc.collect()
    assert gone() is None


class Held:
    def __init__(self, x: Tensor) -> None:
        self.x, self.left, self.right = x, x + 1, [x + 2]


@pytest.mark.parametrize("full_graph", [True, False])
def test_so_are_arguments_and_what_they_lead_to(full_graph: bool) -> None:
    def toggles(h: Any, rows: list[Any], x: Tensor) -> Tensor:
        if h.left is rows[0].x:
            h.left = h.x
            return x * 2
        h.left = rows[0].x
        return x + rows[0].right[0]

    static = sg.to_static(toggles, backend="eager", full_graph=full_graph)
    h, row = (Held(torch.ones(2)) for _ in range(2))
    for _ in range(2):
        static(h, [row], torch.ones(2))
    gone = [weakref.ref(each) for each in (h, row, h.x, row.x)]
    del h, row
    gc.collect()
    assert [each() is None for each in gone] == [True] * len(gone)


def _with_state(x: Tensor) -> int:
    d = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([d], lr=0.3)
    (d - x).square().sum().backward()
    optimizer.step()
    return len(optimizer.state)


def test_the_state_of_one_that_the_run_makes_is_that_of_the_run() -> None:
    with pytest.raises(sg.CaptureError, match="SG305"):
        sg.to_static(_with_state, backend="eager")(torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sg.to_static(_with_state, backend="eager", full_graph=False)(torch.ones(2)) == 1
