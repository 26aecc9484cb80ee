"""Statements over several lines that raise. (No test module: there, pytest rewrites assertions.)"""

from __future__ import annotations

from torch import Tensor


def chosen(x: Tensor) -> Tensor:
    raise (
        ValueError("v") if x[0] > 0
        else KeyError("k"))


def chosen_class(x: Tensor) -> Tensor:
    if x.dim() == 1:
        raise (ValueError if x[0] > 0
               else KeyError)
    return x


def asserted(x: Tensor) -> Tensor:
    assert (
        x > 3).all()
    return x


def asserted_why(x: Tensor) -> Tensor:
    assert (x
            > 3).all(), f"{x[0].item()}"
    return x
