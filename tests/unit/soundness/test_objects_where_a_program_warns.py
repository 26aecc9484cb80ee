"""A program that warns leads to the module that it warns in: that makes its arguments no objects of its own."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor

import stillgraph as sg

MANY = [[number] for number in range(20_000)]  # the module leads to more objects than anybody looks through


class Notes:
    def __init__(self) -> None:
        self.factor = 2.0


def warning(notes: Notes, x: Tensor) -> Tensor:
    if x.sum() > 5:
        warnings.warn("large", stacklevel=1)
    return x * notes.factor


@pytest.mark.parametrize("full_graph", [True, False])
def test_one_program_serves_objects_that_are_alike(full_graph: bool) -> None:
    static = sg.to_static(warning, backend="eager", full_graph=full_graph)
    for x in (torch.ones(3), torch.ones(3) * 2, -torch.ones(3)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert torch.equal(static(Notes(), x), x * 2.0)
        assert len(seen) == int(x.sum() > 5)
    assert static.cache_info().programs == 1
