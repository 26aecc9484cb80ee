"""Calls with something changed before each: a static function gives in turn what its original gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import stillgraph as sg

Turns = tuple[Callable[..., Any], Callable[[int], object]]  # a function of a tensor, and what changes before each call


def agrees(make: Callable[[], Turns], full: bool, calls: int = 4) -> None:
    """Assert that a static function does call after call what the function does, in two worlds made alike.

    Args:
        make: gives the function, and what is to be done before the call of a number.
        full: whether one graph is made of a call.
        calls: how many are made.
    """
    function, change = make()
    again, same_change = make()
    strict: Any = {} if full else {"strict": True}
    static = sg.to_static(again, backend="eager", full_graph=full, **strict)
    expected, given = [], []
    for number in range(calls):
        change(number)
        expected.append(_shown(function))
        same_change(number)
        given.append(_shown(static))
    assert given == expected
    assert len(set(expected)) > 1, "the changes change nothing"


def _shown(function: Callable[..., Any]) -> str:
    return repr(function(torch.ones(1)))
