"""Tensors that an object holds, used past the operations of a program: no call has those of another."""

from __future__ import annotations

import functools
import operator
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph import CaptureError


def holder(value: float) -> Any:
    return SimpleNamespace(x=torch.tensor([value, 2 * value]))


def test_a_list_of_a_tensor_of_an_object_is_read_in_each_call() -> None:
    static = sg.to_static(lambda o: o.x.tolist(), backend="eager")
    assert [static(holder(v)) for v in (1.0, 2.0)] == [[1.0, 2.0], [2.0, 4.0]]


FUNCTIONS = {
    "default": lambda o: [lambda y, v=o.x: y * v],
    "partial": lambda o: [functools.partial(operator.mul, o.x)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_holds_a_tensor_does_not_leave_a_program(name: str) -> None:
    static = sg.to_static(FUNCTIONS[name], backend="eager")
    with pytest.raises(CaptureError, match="iterator or closure leaves the program"):
        static(holder(1.0))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_segments_each_call_makes_its_own(name: str) -> None:
    static = sg.to_static(FUNCTIONS[name], full_graph=False, strict=True, backend="eager")
    for value in (1.0, 2.0, 3.0):
        assert static(holder(value))[0](1).tolist() == [value, 2 * value]


def test_a_tensor_is_not_pickled_in_a_capture() -> None:
    def through(o: Any) -> Any:
        return pickle.loads(pickle.dumps(o.x)) * 1

    with pytest.raises(CaptureError, match=r"pickle\.dumps is given a tensor"):
        sg.to_static(through, backend="eager")(holder(1.0))
    static = sg.to_static(through, full_graph=False, strict=True, backend="eager")
    assert [static(holder(v)).tolist() for v in (1.0, 2.0)] == [[1.0, 2.0], [2.0, 4.0]]
