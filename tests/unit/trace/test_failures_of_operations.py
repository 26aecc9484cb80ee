"""Operations that raise for some values: a `try` around gets it, though fake tensors do not look at them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode

UP = torch.tensor([1.0, 2.0])


def read(x: Tensor) -> Tensor:
    try:
        return x[[5]]
    except IndexError:
        return x * 2


def read_in_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        try:
            return x[[0, 1]], x[[1, 2]]
        except IndexError:
            return x
    return x * 3


def written(x: Tensor) -> Tensor:
    x = x.clone()
    try:
        x[[0, 7]] = 1.0
    except IndexError:
        x = x * 2
    return x


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", [read, read_in_an_arm, written], ids=lambda function: function.__name__)
def test_the_handler_gets_it(function: Callable[[Tensor], Any], way: str) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        for x in (UP, -UP, UP):
            assert repr(static(x)) == repr(function(x))


def test_all_attributes_of_a_tensor_are_not_shown() -> None:
    with pytest.raises(sg.CaptureError, match="all attributes of a tensor"):
        sg.to_static(lambda x: (x * 2, vars(x)), backend="eager")(UP)


def divided(x: Tensor) -> Tensor:
    try:
        return x.long() // (x - 1).long()
    except RuntimeError:
        return x * 2


def taken_apart(x: Tensor) -> Tensor:
    try:
        return x.softmax(2)
    except IndexError:
        return x * 2


def stacked(x: Tensor) -> Tensor:
    try:
        return torch.stack([])
    except RuntimeError as error:
        return x * len(str(error))


def indexed_by_floats(x: Tensor) -> Tensor:
    try:
        return x.long()[x]
    except IndexError as error:
        return x * len(str(error))


def of_bits(x: Tensor) -> Tensor:
    try:
        return x | x
    except NotImplementedError:
        return x * 2


FAILING = [of_bits, divided, taken_apart, stacked, indexed_by_floats]


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FAILING, ids=lambda function: function.__name__)
def test_so_with_other_operations_that_fake_tensors_take_otherwise(
    function: Callable[[Tensor], Any], way: str
) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager", full_graph=way != "segments")
        for x in (UP, -UP, UP):
            assert repr(static(x)) == repr(function(x))
