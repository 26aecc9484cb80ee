"""``x.new(size)`` and its kin: a `torch.Size` is a shape, any other sequence is data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

MAKES: dict[str, Callable[[Tensor], Tensor]] = {
    "new(x.size())": lambda x: x.new(x.size()),
    "new(*x.size())": lambda x: x.new(*x.size()),
    "new(part of a size)": lambda x: x.new(x.shape[:1]),
    "new(a size that is written out)": lambda x: x.new(torch.Size((2, 3))),
    "new(size=x.size())": lambda x: x.new(size=x.size()),
    "new([…])": lambda x: x.new([1.0, 2.0]),
    "new_tensor(x.size())": lambda x: x.new_tensor(x.size()),
    "new_empty(x.size())": lambda x: x.new_empty(x.size()),
    "torch.Tensor(x.size())": lambda x: torch.Tensor(x.size()),
    "torch.FloatTensor(x.size())": lambda x: torch.FloatTensor(x.size()),
    "type(x)(x.size())": lambda x: type(x)(x.size()),
}


@pytest.mark.parametrize("full_graph", [True, False])
def test_what_the_capture_takes_for_the_shape_is_what_the_run_makes(full_graph: bool) -> None:
    def shapes(x: Tensor) -> list[Any]:
        made = [make(x) for make in MAKES.values()]
        ones = [each.zero_() + 1 for each in made]
        return [[each.shape[0], each.dim(), each.numel(), one] for each, one in zip(made, ones)]

    x = torch.randn(5, 8)
    given, expected = sg.to_static(shapes, backend="eager", full_graph=full_graph)(x), shapes(x)
    for name, (*numbers, one), (*others, other) in zip(MAKES, given, expected, strict=True):
        assert (numbers, one.dtype) == (others, other.dtype), name
        assert torch.equal(one, other), name


def test_a_shape_may_be_open() -> None:
    def filled(x: Tensor) -> Tensor:
        made = x.new(x.size()).zero_()
        for _ in range(made.shape[1]):
            made = made + 1
        return made

    static = sg.to_static(filled, backend="eager", input_spec=[sg.InputSpec([None, 4])])
    for rows in (3, 5):
        assert torch.equal(static(torch.zeros(rows, 4)), torch.full((rows, 4), 4.0))
    assert static.cache_info().programs == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.Tensor(len(x[x > 0])),
        lambda x: torch.FloatTensor(x[x > 0].shape[0], 2),
        lambda x: torch.LongTensor(int(x[0])),
        lambda x: torch.Tensor(x[x > 0].size()),
    ],
)
def test_a_shape_may_be_of_the_run(make: Callable[[Tensor], Tensor]) -> None:
    static: Any = sg.to_static(lambda x: make(x).fill_(1), backend="eager")
    for x in (torch.tensor([3.0, 1.0, -1.0]), torch.tensor([2.0, -1.0, -1.0])):
        made = static(x)
        assert torch.equal(made, make(x).fill_(1))
        assert made.dtype is make(x).dtype
    assert static.cache_info().programs == 1
