"""Assertions with texts that pytest does not rewrite: its own code reaches all tests of a session."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def of_a_message(x: Tensor) -> Any:
    y = x * 1
    message = f"{y}"
    y.add_(1)
    assert y.sum() > -100, f"{y} and {x.sum():.2f}"
    try:
        if y.sum() < 0:
            raise ValueError(message)
    except ValueError:
        y = y - 1
    return y, message


def never_asked_for(x: Tensor) -> Any:
    assert x.sum() > -100, f"{x:.2f}"  # which would be a TypeError
    return x
