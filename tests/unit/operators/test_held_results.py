"""What a cache of the user's holds already is a constant: Python runs no code of the function for it."""

from __future__ import annotations

import functools
import logging
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

X = torch.tensor([1.0, 2.0])
LOGGER = logging.getLogger(__name__)


@functools.lru_cache
def available(name: str) -> bool:
    LOGGER.error("looking for %s", name)
    return name == "torch"


def used(x: Tensor) -> Tensor:
    return x + 1 if available("torch") else x - 1


def used_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x + 1 if available("torch") else x - 1
    return x * 2


@pytest.mark.parametrize("function", [used, used_in_an_arm])
def test_logs_nothing_and_may_be_used(function: Any, caplog: pytest.LogCaptureFixture) -> None:
    available("torch")
    caplog.clear()
    static = sg.to_static(function, full_graph=True)
    for x in (X, -X, X):
        assert torch.equal(static(x), function(x))
    assert caplog.messages == []
    assert len(static.programs) == 1
    assert available.cache_info().hits > 2


def test_what_the_cache_drops_is_asked_for_anew(caplog: pytest.LogCaptureFixture) -> None:
    available("torch")
    static = sg.to_static(used, full_graph=False)
    static(X)
    available.cache_clear()
    caplog.clear()
    assert torch.equal(static(X), X + 1)
    assert caplog.messages == ["looking for torch"]


def test_an_arm_that_is_not_taken_fills_no_cache(caplog: pytest.LogCaptureFixture) -> None:
    available("torch")
    static = sg.to_static(used_in_an_arm, full_graph=False)
    static(X)
    available.cache_clear()
    caplog.clear()
    assert torch.equal(static(-X), -X * 2)
    assert caplog.messages == []
    assert available.cache_info().currsize == 0


def test_a_miss_is_still_refused_where_its_value_is_used() -> None:
    available.cache_clear()
    with pytest.raises(sg.CaptureError, match="available gives is used"):
        sg.to_static(used, full_graph=True)(X)
