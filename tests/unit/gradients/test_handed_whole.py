"""What a ``torch.autograd.Function`` may be handed: operands, and objects that each call finds, but makes none of."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import refusal


class Factor:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.value


class FactorModule(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return x * self.value


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Any, x: Tensor) -> Any:  # type: ignore[override]  # as everybody writes it
        ctx.function = function
        return function(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]  # likewise
        return None, ctx.function(grad)


FROM_BEFORE = Factor(2.0)


def outer(x: Tensor) -> Any:
    FROM_BEFORE.value = 3.0
    return Linear.apply(FROM_BEFORE, x)  # type: ignore[no-untyped-call]  # torch's


def closure_over_constants(x: Tensor) -> Any:
    scale, others = 2.0, (FROM_BEFORE, None)
    return Linear.apply(lambda v: v * scale if others else v, x)  # type: ignore[no-untyped-call]  # torch's


def made_object(x: Tensor) -> Any:
    return Linear.apply(Factor(x.sum().item()), x)  # type: ignore[no-untyped-call]  # torch's


def made_module(x: Tensor) -> Any:
    return Linear.apply(FactorModule(2.0), x)  # type: ignore[no-untyped-call]  # torch's


def method(x: Tensor) -> Any:
    return Linear.apply(Factor(2.0).__call__, x)  # type: ignore[no-untyped-call]  # torch's


def partial(x: Tensor) -> Any:
    return Linear.apply(functools.partial(torch.mul, x.sum().item()), x)  # type: ignore[no-untyped-call]  # torch's


def closure(x: Tensor) -> Any:
    scale = [1.0, 2.0, 3.0][int(x.sum()) % 3]
    return Linear.apply(lambda v: v * scale, x)  # type: ignore[no-untyped-call]  # torch's


def counting(x: Tensor) -> Any:
    calls = [0]

    def counted(v: Tensor) -> Tensor:
        calls[0] += 1
        return v * calls[0]

    return Linear.apply(counted, x)  # type: ignore[no-untyped-call]  # torch's


def in_a_loop(x: Tensor) -> Any:
    for i in range(1, 4):
        x = Linear.apply(lambda v: v * i, x)  # type: ignore[no-untyped-call]  # torch's  # noqa: B023
    return x


MADE = (made_object, made_module, method, partial, closure)
REFUSED = {
    counting: "the backward pass of Linear changes",
    in_a_loop: "a variable that is assigned again",
}


@pytest.fixture(autouse=True, params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Any:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


@pytest.mark.parametrize("function", [outer, closure_over_constants, *MADE], ids=lambda each: each.__name__)
def test_what_is_handed_is_that_of_each_call(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for values in ([1.0, 2.0], [-1.0, 2.0], [2.0, 3.0]):
        results = []
        for call in (function, static):
            x = torch.tensor(values, requires_grad=True)
            result = call(x)
            results.append((result.detach(), *torch.autograd.grad(result.sum(), x)))
        assert all(map(torch.equal, *results))
    assert len(static.programs) == 1


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: each.__name__)
def test_what_would_be_another_by_the_backward_pass_is_refused(function: Any) -> None:
    error = refusal(function, torch.ones(2, requires_grad=True))
    assert error.reason.code == "SG305"
    assert REFUSED[function] in str(error)
