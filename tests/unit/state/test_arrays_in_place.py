"""Arrays of numpy that the function changes in place: once in each call, whoever owns their memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import StateLostError
from tests.front_ends import bytecode

__all__ = ["bytecode"]

MAKERS: dict[str, Callable[[], Any]] = {
    "of a tensor": lambda: torch.ones(3).numpy(),
    "numpy's own": lambda: np.ones(3, dtype=np.float32),
    "of a buffer": lambda: np.frombuffer(bytearray(12), dtype=np.float32),
    "a row": lambda: np.ones((4, 3), dtype=np.float32)[1],
}


def in_place(array: Any) -> Any:
    array += 1
    return array


def an_item(array: Any) -> Any:
    array[0] = array[0] + 5
    return array.sum()


def beside_a_tensor(array: Any) -> Any:
    array -= 2
    return torch.zeros(3) + torch.from_numpy(array)


class Holder:
    array: Any = None


held = Holder()


def of_an_attribute(array: Any) -> Any:
    held.array = array
    held.array *= 3
    return array


@pytest.mark.parametrize("full_graph", [True, False], ids=["one graph", "segments"])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("function", [in_place, an_item, beside_a_tensor, of_an_attribute])
def test_once_in_each_call(function: Callable[[Any], Any], kind: str, full_graph: bool) -> None:
    mine, given = MAKERS[kind](), MAKERS[kind]()
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            actual, expected = static(given), function(mine)
            assert type(actual) is type(expected)
            assert (actual is given) == (expected is mine)
            assert np.array_equal(actual, expected)
            assert np.array_equal(given, mine)
    assert function is of_an_attribute or static.cache_info().programs == 1  # where another array is held at first


def test_through_bytecode(bytecode: None) -> None:
    given = MAKERS["of a tensor"]()
    assert sg.to_static(in_place, backend="eager")(given) is given
    assert given.tolist() == [2, 2, 2]


class Memory:
    """Memory that is not numpy's."""

    def __init__(self) -> None:
        self.numbers = np.zeros(3, dtype=np.float32)
        self.calls = 0
        place = (self.numbers.ctypes.data, False)
        self.__array_interface__ = {"shape": (3,), "typestr": "<f4", "data": place, "version": 3}

    def called(self) -> None:
        self.calls += 1


@pytest.mark.parametrize("full_graph", [True, False])
def test_what_cannot_be_put_back_is_not_done_again(full_graph: bool) -> None:
    def locked(x: Tensor, array: Any, other: Any) -> Any:
        array.flags.writeable = False  # numpy does not let it be set again
        array.base.called()
        other += 1
        return x + 1

    memory, other = Memory(), np.zeros(2)
    with pytest.raises(StateLostError, match="could not be put back"):
        sg.to_static(locked, backend="eager", full_graph=full_graph)(torch.ones(2), np.asarray(memory), other)
    assert memory.calls <= 1
    assert other.tolist() == [0, 0]
