from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import stillgraph as sg


def shapes_differ(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x
    else:
        y = x.unsqueeze(0)
    return y + 1


def halving(x: Tensor) -> Tensor:
    try:
        if x.abs().sum() > 100:
            raise ValueError
    except ValueError:
        x = x / 100
    return x if x.abs().sum() < 1 else halving(x[:2] / 2) + 1


def explanation(function: Any) -> Any:
    return sg.to_static(function, backend="eager").explain(torch.ones(3))


def test_a_split_is_counted_and_reported() -> None:
    explained = explanation(shapes_differ)
    (split,) = explained.program.splits
    assert split.place == "y"
    assert split.location.line == shapes_differ.__code__.co_firstlineno + 5
    assert "split: 'y' is used once per path at test_explain.py:" in str(explained)
    assert "split: the result is another one on each path" in str(explained)


def test_what_is_staged() -> None:
    kinds = [construct.kind for construct in explanation(halving).staged]
    assert kinds[0] == "recursion"
    assert set(kinds) == {"recursion", "try", "if"}


def test_a_loop_that_is_tried_both_ways_is_counted_once() -> None:
    def function(x: Tensor) -> Tensor:
        for row in (x, x + 1):
            y = row if row.sum() > 0 else row[None]
            x = x + y.sum()
        return x

    assert len(explanation(function).program.splits) == 2
