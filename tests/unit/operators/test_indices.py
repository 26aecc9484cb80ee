"""Tensors, numbers and truth values of the run where Python asks for an index."""

from __future__ import annotations

import collections
import itertools
import operator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree


def sliced(n: Tensor) -> Any:
    s = [1.0, 2.0, 3.0, 4.0]
    given = s[:n], s[n:], s[-n:], s[::n], tuple(s)[:n], s[slice(1, n)], s[n:3], s[: n + 9]
    return given, list(reversed(s[:n])), list(range(6)[:n]), list(range(9, 1, -2)[int(n) :]), list(range(6)[-n:5])


def counted(n: Tensor) -> Any:
    return list(range(n)), torch.zeros(n, 2), [0] * n, n * [1, 2], (1,) * n, [3] * int(n) + [1]


def picked(n: Tensor) -> Any:
    s = (5, 6, 7, 8)
    chosen = s[n], list(s)[n], [5, 6][bool(n == 2)], s[n == 2], range(5)[n], collections.deque(s)[n]
    return chosen, operator.index(n) + 1, operator.index(int(n)), operator.getitem(s, n)


def changed(n: Tensor) -> Any:
    a, b, c, d, e = ([1, 2, 3, 4] for _ in range(5))
    a[n] = 9
    del b[n]
    del c[n:]
    d.insert(n, 7)
    e *= n
    return a, b, c, d, e, [1, 2, 3].pop(n)


def others(n: Tensor) -> Any:
    start = list(enumerate("ab", n))
    cut = list(itertools.islice([1, 2, 3], n)), list(itertools.islice((4, 5, 6, 7), int(n), n + 1))
    return start, cut, round(2.345, n), round(2.345, int(n)), n << n


def out_of_range(n: Tensor) -> Any:
    return [1, 2, 3][n + 1]


EVERY = (sliced, counted, picked, changed, others, out_of_range)


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, (torch.tensor(1),), (torch.tensor(2),))


@pytest.mark.parametrize("function", EVERY[:-1])
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for value in (2, 1):
        assert repr(traced(torch.tensor(value))) == repr(function(torch.tensor(value)))


USES = (lambda s, n: s[:n], lambda s, n: s[n], lambda s, n: operator.index(n), lambda s, n: s * n)


@pytest.mark.parametrize("use", USES)
def test_floats_are_no_indices(use: Any) -> None:
    agree(lambda n: use([1, 2, 3], n), (torch.tensor(1.0),))
