"""Sizes that differ from call to call, where a program begins in the midst of one: they are open from the second on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import captured

X = torch.arange(1.0, 11.0)
CALLS = [(X, torch.tensor(float(bound))) for bound in (2, 4, 3, 5, 1, 0, 6, 7, 2, 4, 6)]
"""Of 8, 6, 7, 5, 9, 10, 4 and 3 elements."""
FEW = [(X, torch.tensor(float(bound))) for bound in (8, 9, 10, 8, 9, 10)]
"""Of 2, 1 and 0, which are special to torch: broadcasting, squeezing, and what is empty."""


def arithmetic(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print("a")
    return y * 2 + y.shape[0], y.shape, y.mean()


def loop(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print(y.shape)
    for number in range(y.shape[0]):
        y = y + number
    return y


def elements(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print("a")
    found = []
    for each in y:
        found.append(each * 2)
    print("b")
    return found


def decided_by_it(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print("a")
    if y.shape[0] % 2 == 0:
        y = torch.cat([y, y])
    print("b")
    return y.view(-1), y.numel() / 2, f"{y.shape}"


def two_that_are_one(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    z = x[x > bound] * 2
    print("a")
    return y + z, torch.stack([y, z]), y @ z


def two_that_are_not(x: Any, bound: Any) -> Any:
    y, z = x[x > bound], x[x <= bound]
    print("a")
    try:
        return y + z
    except RuntimeError:
        return None


def lists(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print("a")
    return torch.zeros(y.shape[0], 3) + y[:, None], list(y.shape), [0] * len(y), y.tolist()


def matrix(x: Any, bound: Any) -> Any:
    y = x[x > bound].repeat(2, 1)
    print("a")
    return y.t() @ y, y.reshape(-1), y.chunk(2), type(y.shape[1]), y.size(1)


def keys(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print("a")
    found = {y.shape[0]: 1}
    print(found)
    return found, y + 1, hash(y.shape[0]), y.shape == (3,)


def padded(x: Any, bound: Any) -> Any:
    y = x[x > bound]
    print("a")
    missing = 8 - y.shape[0]
    return torch.nn.functional.pad(y, (0, max(missing, 0))), max(missing, 0), torch.arange(len(y)), y[: len(y) // 2]


def trained(x: Any, bound: Any) -> Any:
    x = x.clone().requires_grad_()
    y = x[x > bound]
    print("a")
    loss = (y * y).sum() / max(len(y), 1)
    print(loss.item())
    loss.backward()
    return x.grad


def written(x: Any, bound: Any) -> Any:
    y = x[x > bound].clone()
    print("a")
    y[:2] = 3
    y += 1
    print("b")
    return y


def not_contiguous(x: Any, bound: Any) -> Any:
    y = x[x > bound].repeat(2, 1).t()
    print("a")
    return y * 2, y.stride()


PROGRAMS = {
    arithmetic: 3,
    loop: 3,
    elements: 3,
    decided_by_it: 5,
    two_that_are_one: 3,
    two_that_are_not: 3,
    lists: 3,
    matrix: 3,
    keys: 10,
    padded: 3,
    trained: 4,
    written: 3,
    not_contiguous: 3,
}
"""How many programs eight sizes make: one of the first place, and two of each behind it, where no size decides."""


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_sizes_that_differ(function: Callable[..., Any]) -> None:
    static, made = captured(lambda: function, [*CALLS, *CALLS])
    assert made[len(CALLS) - 1] == made[-1] == PROGRAMS[function], made
    assert static.plan.gave_up is None


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_sizes_that_are_special(function: Callable[..., Any]) -> None:
    captured(lambda: function, [*CALLS[:4], *FEW, *CALLS[2:6]])


def test_two_sizes_have_a_program_each() -> None:
    _, made = captured(lambda: arithmetic, [CALLS[0], CALLS[1]] * 3)
    assert made == [2, 3, 3, 3, 3, 3]
