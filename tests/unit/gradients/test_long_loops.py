"""Loops of thousands of iterations keep for the backward pass what eager keeps, and not one tensor more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.gradients.scenarios import V

TRIPS = 5000


def by_tensor(x, w, n):
    i = torch.tensor(0)
    h = x
    while i < n:
        h = torch.tanh(h * w + x)
        if h.sum() > 1:
            h = h * 0.9
        i = i + 1
    return h.sum()


def by_range(x, w, n):
    h = x
    for _ in range(n):
        h = torch.tanh(h * w + x)
        if h[0] > 100:
            break
    return h.sum()


def into_a_list(x, w, n):
    states = []
    h = x
    for _ in range(n):
        h = torch.tanh(h * w + x)
        if h[0] > -2:
            states.append(h)
    return torch.stack(states).sum()


def truncated(x, w, n):
    h = x
    for i in range(n):
        h = torch.tanh(h * w + x)
        if i % 10 == 0:
            h = h.detach()
    return h.sum()


def without_gradient(x, w, n):
    h = x
    with torch.no_grad():
        for _ in range(n):
            h = torch.tanh(h * w + x)
    return (h * w).sum()


def written_in_place(x, w, n):
    y = torch.zeros(n, dtype=torch.float64)
    h = x
    for i in range(n):
        h = torch.tanh(h * w + x)
        y[i] = h[0]
    return y.sum()


def tail_recursive(x, w, n):
    def go(h, left):
        if left <= 0:
            return h
        return go(torch.tanh(h * w + x), left - 1)

    return go(x, n).sum()


def kept(function: Any, trips: int) -> tuple[Counter[Any], int, list[Tensor | None]]:
    """What a call saves for its backward pass, how many nodes that has, and the gradients."""
    x, w = V(0.1, -0.2, 0.3, 0.4), V(0.5, 0.9, -0.7, 0.2)
    saved: Counter[Any] = Counter()

    def pack(tensor: Tensor) -> Tensor:
        saved[tensor.dtype, tuple(tensor.shape), tensor.untyped_storage().nbytes()] += 1
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = function(x, w, torch.tensor(trips))
    nodes, seen = [y.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes.extend(after for after, _ in node.next_functions)
    if y.requires_grad:
        y.backward()
    return saved, len(seen), [x.grad, w.grad]


@pytest.mark.parametrize(
    "function",
    [by_tensor, by_range, into_a_list, truncated, without_gradient, written_in_place, tail_recursive],
    ids=lambda function: function.__name__,
)
def test_keeps_what_eager_keeps(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    kept(static, 3)  # captures
    for trips in (0, 1, 10, TRIPS):
        if trips == 0 and function is into_a_list:
            continue  # nothing to stack
        if trips == TRIPS and function is tail_recursive:
            saved = kept(static, trips)[0]  # more than Python's own recursion can
            assert sum(saved.values()) == 3 * TRIPS
            continue
        expected, actual = kept(function, trips), kept(static, trips)
        assert actual[:2] == expected[:2]
        for mine, theirs in zip(actual[2], expected[2], strict=True):
            assert_same(theirs, mine)
    assert static.cache_info().programs == 1


def test_what_a_call_kept_goes_with_its_result() -> None:
    static = sg.to_static(by_tensor, backend="eager")
    x, w = V(0.1, -0.2), V(0.5, 0.9)
    alive: set[int] = set()

    class Packed:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor
            alive.add(id(self))

        def __del__(self) -> None:
            alive.discard(id(self))

    for trips in (3, TRIPS, 3, TRIPS):
        with torch.autograd.graph.saved_tensors_hooks(Packed, lambda packed: packed.tensor):
            y = static(x, w, torch.tensor(trips))
        assert len(alive) >= 3 * trips
        y.backward()
        del y
        assert not alive
