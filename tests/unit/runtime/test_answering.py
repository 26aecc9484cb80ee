"""Callables whose class answers for every attribute (proxies, mocks): nothing but the code itself asks them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

import stillgraph as sg

X = torch.tensor([1.0, 2.0])


def by_sum(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 1


class Answering:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> int:
        self.asked.append(name)
        return 2

    def __call__(self, x: Tensor) -> Tensor:
        return by_sum(x)


class Describing(Answering):
    """Looks like another function, as decorators that are classes do."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        functools.update_wrapper(self, function)


def called(function: Any, x: Tensor) -> Any:
    return function(x) + 1


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("make", [Answering, lambda: Describing(by_sum)])
def test_nobody_asks(make: Callable[[], Any], full_graph: bool) -> None:
    target = make()
    static = sg.to_static(target, full_graph=full_graph, strict=not full_graph, backend="eager")
    inside = sg.to_static(called, full_graph=full_graph, strict=not full_graph, backend="eager")
    for x in (X, -X):
        torch.testing.assert_close(static(x), by_sum(x))
        torch.testing.assert_close(inside(target, x), by_sum(x) + 1)
    assert static.cache_info().programs == 1
    static.explain(X), static.explain_miss(X), static.code, repr(static)
    sg.export(target, (X,))
    assert target.asked == []


def test_what_it_has_itself_is_told() -> None:
    static = sg.to_static(Describing(by_sum), full_graph=False, backend="eager")
    static(X)
    assert (static.__name__, list(static.__signature__.parameters)) == ("by_sum", ["x"])
    assert "x is float32[2]" in static.code
    assert list(sg.to_static(Answering(), backend="eager").__signature__.parameters) == ["x"]


@pytest.mark.filterwarnings("ignore:Python needs a value:RuntimeWarning")
def test_a_mock() -> None:
    made = mock.MagicMock(side_effect=by_sum)
    static = sg.to_static(made, full_graph=False, backend="eager")
    for count, x in enumerate((X, -X, X), 1):
        torch.testing.assert_close(static(x), by_sum(x))
        assert made.call_count == count
