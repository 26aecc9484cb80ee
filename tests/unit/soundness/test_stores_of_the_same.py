"""A store of what is there already: another call finds something else there, and has to store it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stillgraph as sg

G: Any = 0


class Kept:
    def __init__(self, value: Any) -> None:
        self.n = value
        self.values = [value, 2]


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n: Any = 0

    def forward(self, x: Any) -> Any:
        self.n = 2
        return x + 1


def attribute(kept: Kept, value: Any) -> None:
    kept.n = value


def none(kept: Kept, value: Any) -> None:
    kept.n = None


def there_and_back(kept: Kept, value: Any) -> None:
    kept.n = 5
    kept.n = value


def read_after(kept: Kept, value: Any) -> Any:
    kept.n = value
    return kept.n


def element(kept: Kept, value: Any) -> None:
    kept.values[0] = value


def reversed_in_place(kept: Kept, value: Any) -> None:
    kept.values.reverse()


def appended_and_popped(kept: Kept, value: Any) -> Any:
    kept.values.append(7)
    return kept.values.pop()


def in_a_global(kept: Kept, value: Any) -> None:
    global G
    G = value


def in_a_module(kept: Kept, value: Any) -> Any:
    return MODEL(torch.zeros(1))


MODEL = Model()
FUNCTIONS = [attribute, none, there_and_back, read_after, element, reversed_in_place, appended_and_popped]
FUNCTIONS += [in_a_global, in_a_module]
BEFORE = (2, 5, 2, 7, "a", None, 2, 5)


def _states(function: Any, compiled: Any) -> list[Any]:
    global G
    states = []
    for before in BEFORE:
        kept = Kept(before)
        G = MODEL.n = before
        result = compiled(kept, 2)
        states.append((repr(result), kept.n, kept.values, G, MODEL.n))
    return states


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Any, full: bool) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full)
    assert _states(function, static) == _states(function, function)


@pytest.mark.parametrize("full", [True, False])
def test_of_an_outer_variable(full: bool) -> None:
    count: Any = 0

    def function(x: Any) -> Any:
        nonlocal count
        count = 2
        return x + 1

    static = sg.to_static(function, backend="eager", full_graph=full)
    for before in BEFORE:
        count = before
        static(torch.ones(1))
        assert count == 2
