"""Dicts whose order counts are compared, where only the run knows what they hold."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def in_other_orders(x: Tensor) -> Any:
    k = x.sum().item()
    first, second = OrderedDict(a=1, b=k), OrderedDict(b=k, a=1)
    return first == second, first != second, first == dict(second), first == OrderedDict(a=1, b=3.0)


def inside_others(x: Tensor) -> Any:
    k = x.sum().item()
    first, second = OrderedDict(a=1, b=k), OrderedDict(b=k, a=1)
    return [first] == [second], (1, first) == (1, second), second in [first], {"d": first} == {"d": second}


def decides(x: Tensor) -> Any:
    k = x.sum().item()
    return x if OrderedDict(a=1, b=k) == OrderedDict(b=k, a=1) else -x


@pytest.mark.parametrize("function", [in_other_orders, inside_others, decides])
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in (torch.ones(3), torch.ones(2), -torch.ones(3)):
        assert repr(static(x)) == repr(function(x))
