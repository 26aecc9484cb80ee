"""To autograd ``torch.cond`` and its kin are one operation: what the path not taken uses has a gradient of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import stillgraph as sg

CAPTURES: list[Callable[..., Any]] = [
    lambda function: sg.to_static(function, backend="eager"),
    lambda function: sg.symbolic_trace(function),
]
Function = Callable[[Tensor, Tensor, Tensor], Any]


def closed_over(x: Tensor, w: Tensor, v: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x + v, (x,))


def operands(x: Tensor, w: Tensor, v: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x, w, v: x * w, lambda x, w, v: x + w, (x, w, v))


def one_of_two_results(x: Tensor, w: Tensor, v: Tensor) -> Any:
    first, _ = torch.cond(x.sum() > 0, lambda: (x.detach() * 2, x * w), lambda: (x.sin(), x + v))
    return first * 1


def by_a_plain_condition(x: Tensor, w: Tensor, v: Tensor) -> Any:
    return torch.cond(x.shape[0] > 1, lambda x: x * w, lambda x: x + v, (x,))


def in_a_branch(x: Tensor, w: Tensor, v: Tensor) -> Any:
    if x.max() > 5:
        return x * 3
    return torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x + v, (x,))


def in_a_loop(x: Tensor, w: Tensor, v: Tensor) -> Any:
    while x.sum() < 4:
        x = torch.cond(x.sum() > 0, lambda x: x * w + 1, lambda x: x.abs() + v, (x,))  # called at once
    return x * 1


def nested(x: Tensor, w: Tensor, v: Tensor) -> Any:
    def inner(x: Tensor) -> Any:
        return torch.cond(x.sum() > 8, lambda x: x * v, lambda x: x.cos(), (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x * w, (x,))


def without_gradients(x: Tensor, w: Tensor, v: Tensor) -> Any:
    with torch.no_grad():
        y = torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x + v, (x,))
    return y + x


def scanned(x: Tensor, w: Tensor, v: Tensor) -> Any:
    return scan(lambda c, y: (c * w + y, v.detach() * 1), torch.zeros(2), x[None] * 1)[0]


FUNCTIONS = [
    *(closed_over, operands, one_of_two_results, by_a_plain_condition, in_a_branch, in_a_loop, nested),
    *(without_gradients, scanned),
]
INPUTS = (torch.tensor([1.0, 1.0]), torch.tensor([-1.0, -1.0]), torch.tensor([2.0, 7.0]))


def outcome(function: Function, called: Callable[..., Any], x: Tensor) -> Any:
    given = [x.clone().requires_grad_(), nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([3.0, 4.0]))]
    result = called(*given)
    result.sum().backward()
    return result.tolist(), result.requires_grad, [None if t.grad is None else t.grad.tolist() for t in given]


@pytest.mark.parametrize("capture", CAPTURES, ids=["full graph", "with breaks"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_gradients(function: Function, capture: Callable[..., Any]) -> None:
    static = capture(function)
    for x in INPUTS:
        assert outcome(function, static, x) == outcome(function, function, x)


def test_layers_of_a_module() -> None:
    class Chooses(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Any:
            return torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.other(x), (x,))

    module = Chooses()
    static = sg.to_static(module, backend="eager")
    for x in INPUTS:
        gradients = []
        for called in (module, static):
            module.zero_grad()
            called(x).sum().backward()
            gradients.append([None if p.grad is None else p.grad.tolist() for p in module.parameters()])
        assert gradients[0] == gradients[1]


def test_a_loop_of_no_iterations() -> None:
    """What the body uses has zeros. (torch 2.13 computes the gradients of one iteration there.)"""

    def repeated(x: Tensor, w: Tensor, v: Tensor) -> Any:
        return while_loop(lambda i, c: i < x.sum(), lambda i, c: (i + 1, c * w), (torch.tensor(0.0), x + v))[1]

    static = sg.to_static(repeated, backend="eager")
    assert outcome(repeated, static, INPUTS[0]) == outcome(repeated, repeated, INPUTS[0])
    assert outcome(repeated, static, INPUTS[1]) == ([2.0, 3.0], True, [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
