"""A ``with`` block that a refused capture cannot leave is left all the same, and what that writes is undone."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode

UP = torch.tensor([1.0, 2.0, 3.0])


@contextlib.contextmanager
def counting(st):
    st.n += 1
    try:
        yield
    finally:
        st.n += 10


class Counting:
    def __init__(self, st):
        self.st = st

    def __enter__(self):
        self.st.n += 1

    def __exit__(self, *error):
        self.st.n += 10


@pytest.mark.parametrize("manager", [counting, Counting])
@pytest.mark.parametrize("way", ["source", "bytecode"])
def test_nothing_is_left_of_it(manager: Any, way: str) -> None:
    st = SimpleNamespace(n=0)

    def any_of_them(x):
        def each():
            with manager(st):
                for i in range(3):
                    yield x[i] > 1

        return any(each())

    front_end = through_bytecode() if way == "bytecode" else contextlib.nullcontext()
    with front_end, pytest.raises(sg.CaptureError, match="only the run knows whether a loop leaves the generator"):
        sg.to_static(any_of_them, backend="eager")(UP)
    assert st.n == 0


@pytest.mark.parametrize("manager", [counting, Counting])
def test_without_a_full_graph_it_is_entered_and_left_once(manager: Any) -> None:
    st = SimpleNamespace(n=0)

    def any_of_them(x):
        def each():
            with manager(st):
                for i in range(3):
                    yield x[i] > 1

        return any(each())

    static = sg.to_static(any_of_them, backend="eager", full_graph=False)
    for number, x in enumerate((UP, -UP, UP), start=1):
        assert bool(static(x)) == bool(x.max() > 1)
        assert st.n == 11 * number
