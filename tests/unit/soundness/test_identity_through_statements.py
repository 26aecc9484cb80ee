"""Two names of one list, one of which several statements in turn may make anew: it stays one list where none does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

Pair = tuple[list[Any], list[Any]]


def _positive(v: Tensor) -> Iterator[Tensor]:
    for e in v:
        if e > 0:
            yield e


def branch_then_loop(s: Tensor, v: Tensor) -> Pair:
    m: list[Any] = []
    k = m
    if s > 0:
        m = list(_positive(v))
    while s > 1:
        s = s - 1
        m = list(_positive(v))
    return m, k


def loop_then_branch(s: Tensor, v: Tensor) -> Pair:
    m: list[Any] = []
    k = m
    while s > 1:
        s = s - 1
        m = list(_positive(v))
    if s > 2:
        m = list(_positive(v))
    return m, k


def two_loops(s: Tensor, v: Tensor) -> Pair:
    m: list[Any] = []
    k = m
    for _ in _positive(v):
        for _ in _positive(v):
            m = list(_positive(v))
    n = 0
    while s > 1:
        n += 1
        if n > 4:
            break
        m = list(_positive(v))
    return m, k


def of_known_length(s: Tensor, v: Tensor) -> Pair:
    m = [v]
    k = m
    if s > 2:
        m = [s]
    while s > 1:
        s = s - 1
        m = [s + 1]
    return m, k


def written(s: Tensor, v: Tensor) -> Pair:
    m: list[Any] = []
    k = m
    if s > 2:
        m = list(_positive(v))
    while s > 1:
        s = s - 1
        m.append(s)
    return m, k


FUNCTIONS = [branch_then_loop, loop_then_branch, two_loops, of_known_length, written]
CALLS = [(s, v) for s in (0.5, -1.0, 3.0, 1.5) for v in ([-1.0, -2.0], [1.0, 2.0, -1.0])]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_one_list_where_it_is_in_eager(function: Callable[..., Pair], full_graph: bool) -> None:
    options = {} if full_graph else {"full_graph": False, "strict": True}
    static: Any = sg.to_static(function, backend="eager", **options)
    for s, v in CALLS:
        args = torch.tensor(s), torch.tensor(v)
        wanted = function(*args)
        found = static(*args)
        assert repr(found) == repr(wanted)
        assert (found[0] is found[1]) == (wanted[0] is wanted[1])
