"""Tensors in sets and as keys are told by which one they are: what a branch or loop leaves may be one from before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree

CALLS = (torch.full((2,), 5.0), torch.zeros(2), torch.tensor([-1.0, 9.0]))


def looked_up(x: Tensor) -> Any:
    d = {x: 1}
    y = x if x.sum() > 3 else x + 1
    return y in d


def got(x: Tensor) -> Any:
    y = x if x.sum() > 3 else x + 1
    return {x: 1}.get(y, 2)


def in_a_set(x: Tensor) -> Any:
    y = x if x.sum() > 3 else x + 1
    return len({x, y})


def added(x: Tensor) -> Any:
    seen, y = set(), x
    for _ in range(3):
        if y not in seen:
            seen.add(y)
        if x.sum() > 3:
            y = y * 1
    return len(seen)


def a_key(x: Tensor) -> Any:
    y = x if x.sum() > 3 else x + 1
    d = {y: 1}
    d[x] = 2
    return len(d)


def chosen_in_a_loop(x: Tensor) -> Any:
    rows = list(x)
    places = {row: place for place, row in enumerate(rows)}
    best = rows[0]
    for row in rows:
        if row > best:
            best = row
    return places[best]


class Seen(nn.Module):
    """Remembers its parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.seen = {self.w}

    def forward(self, x: Tensor) -> Any:
        p = self.w if x.sum() > 3 else self.w * 1
        return p in self.seen, p is self.w


@pytest.mark.parametrize("function", [looked_up, got, in_a_set, added, a_key, chosen_in_a_loop, Seen])
def test_refused(function: Any) -> None:
    made = function() if function is Seen else function
    with pytest.raises(sg.CaptureError, match="SG301") as refused:
        sg.to_static(made, backend="eager")(CALLS[0])
    assert "hash" in str(refused.value)


@pytest.mark.parametrize("function", [looked_up, got, in_a_set, added, a_key, chosen_in_a_loop, Seen])
def test_left_to_python(function: Any) -> None:
    eager, other = (Seen(), Seen()) if function is Seen else (function, function)
    static = sg.to_static(other, backend="eager", full_graph=False, strict=True)
    for call in (*CALLS, *reversed(CALLS)):
        assert static(call) == eager(call)


def certain(x: Tensor) -> Any:
    y = x + 1
    d = {x: 1, y: 2}
    if x.sum() > 3:
        z = x * 2
    else:
        z = x - 1
    return d[x], d[y], len({x, y, x}), x in d, z


def in_both_arms(x: Tensor) -> Any:
    d = {x: 1}
    return (2 * x if x in d else x) if x.sum() > 3 else x - d[x]


@pytest.mark.parametrize("function", [certain, in_both_arms])
def test_that_are_the_same_on_each_path(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for call in CALLS:
        assert str(static(call)) == str(function(call))
    agree(function, CALLS[0])
