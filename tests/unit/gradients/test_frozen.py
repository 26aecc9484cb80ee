"""Parameters that one path freezes, or thaws, before a backward pass of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager, refused

Pass = Callable[[Tensor, Tensor, Tensor], Any]


def is_it_there(w: Tensor, b: Tensor, x: Tensor) -> Any:
    w.grad = b.grad = None
    (w * x + b).sum().backward()
    return b.grad is None, b.grad


def used_where_it_is_there(w: Tensor, b: Tensor, x: Tensor) -> Any:
    (w * x + b * 2).sum().backward()
    return x + b.grad if b.grad is not None else x


def thawed_afterwards(w: Tensor, b: Tensor, x: Tensor) -> Any:
    (w * x + b * 2).sum().backward()
    b.requires_grad_(True)
    return x * 2 if b.grad is None else x


def under_another_condition(w: Tensor, b: Tensor, x: Tensor) -> Any:
    if x[0] > 0:
        (w * x + b * 2).sum().backward()
    return 0 if b.grad is None else b.grad.clone()


def what_is_lost(w: Tensor, b: Tensor, x: Tensor) -> Any:
    return torch.autograd.grad((b * x + w).sum(), [w])


@pytest.mark.parametrize("start", [True, False], ids=["freezes", "thaws"])
@pytest.mark.parametrize(
    "then",
    [is_it_there, used_where_it_is_there, thawed_afterwards, under_another_condition, what_is_lost],
    ids=lambda then: then.__name__,
)
def test_gradient_of_what_one_path_freezes(then: Pass, start: bool) -> None:
    @as_in_eager
    def scenario(wrap: Wrap) -> Any:
        w, b = (nn.Parameter(torch.ones(3, dtype=torch.float64)) for _ in range(2))
        b.requires_grad_(start)

        def f(x):
            if x.sum() < 0:
                b.requires_grad_(not start)
            return then(w, b, x)

        f = wrap(f)
        out = []
        for a in (P, N, P, N):
            out.append((f(V(*a, g=False)), b.requires_grad))
            out.append([None if p.grad is None else p.grad.clone() for p in (w, b)])
        return out

    scenario()


def asks_what_is_computed(w: Tensor, b: Tensor, x: Tensor) -> Any:
    return (b * 2 + x).requires_grad


def asks_whether_it_is_a_leaf(w: Tensor, b: Tensor, x: Tensor) -> Any:
    return (b * 2).is_leaf


def asks_what_paths_leave(w: Tensor, b: Tensor, x: Tensor) -> Any:
    v = w if x[0] > 0 else w.detach()
    return (v * 2).requires_grad


def asks_whether_paths_leave_a_leaf(w: Tensor, b: Tensor, x: Tensor) -> Any:
    return (w if x[0] > 0 else w * 2).is_leaf


def hands_to_numpy(w: Tensor, b: Tensor, x: Tensor) -> Any:
    return (b * 2).numpy()


@pytest.mark.parametrize(
    "ask",
    [
        *(asks_what_is_computed, asks_whether_it_is_a_leaf, asks_what_paths_leave, asks_whether_paths_leave_a_leaf),
        hands_to_numpy,
    ],
    ids=lambda ask: ask.__name__,
)
def test_what_is_computed_of_it_does_not_know_either(ask: Pass) -> None:
    w, b = (nn.Parameter(torch.ones(3, dtype=torch.float64)) for _ in range(2))

    def f(x):
        if x.sum() < 0:
            b.requires_grad_(False)
        return ask(w, b, x)

    assert "requires_grad" in (said := refused(f, V(*P, g=False))) or "is_leaf" in said


@as_in_eager
def test_what_is_computed_of_others_too_requires_a_gradient(wrap: Wrap) -> Any:
    w, b = (nn.Parameter(torch.ones(3, dtype=torch.float64)) for _ in range(2))

    def f(x):
        if x.sum() < 0:
            b.requires_grad_(False)
        h = w * x + b
        return h.requires_grad, h.is_leaf, h

    f = wrap(f)
    return [f(V(*a, g=False)) for a in (P, N)]
