"""Exceptions that a program itself handles, as branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.exceptions.catching import hand_out_failures, handles
from stillgraph.program.operations import EFFECTFUL
from stillgraph.program.verify import verify
from tests.unit.passes.captured import run
from tests.unit.passes.test_single_passes import targets

X = torch.tensor([1.0, 2.0])
CALLS = (X, -X, X * 9, X - 1.5, torch.zeros(2))


class TooLarge(ValueError):
    """An exception of the user's."""


class TooSmall(ValueError):
    """Another."""


def in_a_branch(x: Tensor) -> Tensor:
    try:
        if x.sum() > 5:
            raise TooLarge("too large")
        y = x + 1
    except TooLarge:
        y = x / 10
    return y


def through_a_call(x: Tensor) -> tuple[Tensor, bool]:
    def checked(v: Tensor) -> Tensor:
        assert v.max() < 3, "too large"
        return torch.linalg.inv(torch.diag(v.abs() + 1))

    fine = True
    try:
        y = checked(x)
    except AssertionError:
        y, fine = checked(x / 9), False
    return y, fine


def from_a_loop(x: Tensor) -> tuple[Tensor, int]:
    try:
        y, steps = x, 0
        while y.sum() < 10:
            if y.min() < 0:
                raise TooSmall("negative")
            y = y + 1
            steps += 1
    except TooSmall:
        y, steps = x - 1, -1
    return y, steps


def before_an_endless_loop(x: Tensor) -> Tensor:
    try:
        if x.sum() <= 0:
            raise TooSmall("would not end")
        y = x * 1
        while y.sum() < 10:
            y = y * 2
    except ValueError:
        y = x
    return y


def nested(x: Tensor) -> Tensor:
    try:
        try:
            if x.sum() > 5:
                raise TooLarge("inner")
            if x.sum() < 0:
                raise TooSmall("outer")
            y = x * 2
        except TooLarge:
            y = x * 3
        y = y + 1
    except TooSmall:
        y = x * 5
    return y


def raised_in_the_handler(x: Tensor) -> Tensor:
    try:
        try:
            if x.sum() > 0:
                raise TooLarge
            y = x * 2
        except TooLarge:
            if x.sum() > 5:
                raise TooSmall from None
            y = x * 3
    except TooSmall:
        y = x * 5
    return y


def in_a_loop(x: Tensor) -> Tensor:
    total = torch.zeros(2)
    for i in range(int(x.abs().sum())):
        try:
            if (x * i).sum() > 5:
                raise TooLarge
            total = total + x
        except TooLarge:
            total = total - 1
    return total


def of_a_list(x: Tensor) -> Tensor:
    kept = [value for value in x if value > 0]
    try:
        y = kept[1] * x
    except IndexError:
        y = x - 7
    return y


@pytest.mark.parametrize(
    "function",
    [
        *(in_a_branch, through_a_call, from_a_loop, before_an_endless_loop, nested, raised_in_the_handler, in_a_loop),
        of_a_list,
    ],
)
def test_a_handler_runs_where_python_runs_it(function: Callable[..., Any]) -> None:
    program = sg.export(function, (X,))
    assert handles(program)
    assert not handles(hand_out_failures(program))
    lowered = pipeline.run(program)
    verify(lowered)
    assert not set(targets(lowered)) & EFFECTFUL
    for x in CALLS:
        want = function(x)
        torch.testing.assert_close(run(lowered, (x,)), list(want) if isinstance(want, tuple) else [want])


def test_what_is_not_caught_goes_on() -> None:
    def partly(x: Tensor) -> Tensor:
        try:
            if x.sum() > 5:
                raise TooLarge("caught")
            if x.sum() < 0:
                raise KeyError("not caught")
            y = x * 2
        except TooLarge:
            y = x * 3
        return y

    lowered = pipeline.run(sg.export(partly, (X,)))
    for x in (X, X * 9):
        torch.testing.assert_close(run(lowered, (x,)), [partly(x)])
    with pytest.raises(RuntimeError, match="KeyError: 'not caught'"):
        run(lowered, (-X,))


# ---- refusals
def by_torch(x: Tensor) -> Tensor:
    try:
        y = torch.linalg.cholesky(x.diag())
    except RuntimeError:
        y = x.diag()
    return y


def looking_at_it(x: Tensor) -> Any:
    try:
        if x.sum() > 5:
            raise TooLarge(x.sum().item())
    except TooLarge as error:
        x = x * error.args[0]
    return x


def looking_back(x: Tensor) -> Tensor:
    y = x
    try:
        y = x * 2
        if x.sum() > 5:
            raise TooLarge("large")
        y.neg_()
    except TooLarge:
        y = y + 1
    return y


def leaving_traces(x: Tensor) -> Tensor:
    y = x * 1
    try:
        if x.sum() > 5:
            raise TooLarge("large")
        y.add_(1)
    except TooLarge:
        return y
    return y * 2


def drawing(x: Tensor) -> Tensor:
    try:
        if x.sum() > 5:
            raise TooLarge("large")
        y = x + torch.rand(2)
    except TooLarge:
        y = x
    return y


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (by_torch, "linalg_cholesky in a try may itself raise RuntimeError"),
        (looking_at_it, "an except block uses the exception"),
        (looking_back, "an except block uses 'y', which is written in place in the try"),
        (leaving_traces, "a try writes to a tensor in place"),
        (drawing, "a try draws random numbers"),
    ],
)
def test_what_no_branch_can_say_is_refused(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(ExportError, match=text) as error:
        pipeline.run(sg.export(function, (X,)))
    assert error.value.reason.code == "SG402"
    assert "test_catching.py" in str(error.value)


def with_a_fallback(x: Tensor) -> Tensor:
    """As caches are written: a device may lack the operation."""
    kept = torch.zeros(4)
    while x.sum() < 9:
        try:
            kept.index_copy_(0, torch.tensor([1, 3]), x)
        except NotImplementedError:
            kept[torch.tensor([1, 3])] = x
        x = x + kept[1:3].abs() + 1
    return kept


def test_what_torch_has_not_implemented_is_known_before_the_run() -> None:
    lowered = pipeline.run(sg.export(with_a_fallback, (X,)))
    assert not handles(lowered)
    for call in CALLS:
        torch.testing.assert_close(run(lowered, (call,))[0], with_a_fallback(call))
