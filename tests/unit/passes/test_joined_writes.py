"""Writes in place to what may be one of two tensors: every name sees what eager PyTorch's would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.state.joined_writes import write_to_both
from stillgraph.program.program import Program
from stillgraph.program.verify import verify
from stillgraph.runtime.native.native import lower


def one_of_two(x: Tensor, z: Tensor, p: Tensor) -> Any:
    y = x if p else z
    y.add_(1)
    x.mul_(3)
    return x * 1, z * 1, y * 1


def one_that_is_new(x: Tensor, z: Tensor, p: Tensor) -> Any:
    x = x * 1
    y = x if p else z * 2
    x.add_(1)
    y.mul_(2)
    y[0] = 7
    return x * 1, y * 1


def in_a_loop(x: Tensor, z: Tensor, p: Tensor) -> Any:
    x = x * 1
    for _ in range(int(z.sum())):
        y = x if x.sum() < 4 else z
        y.add_(1)
    return x * 1, z * 1


def read_through_a_view(x: Tensor, z: Tensor, p: Tensor) -> Any:
    y = x if p else z
    y.add_(1)
    turned = y.reshape(2, 1).transpose(0, 1)
    seen = turned * 2 + turned.T
    y.mul_(3)
    return seen, x * 1, z * 1, y * 1


def rows_in_another_order(x: Tensor, z: Tensor, p: Tensor) -> Any:
    kept = torch.zeros(2, 3)
    kept[:, 2] = x
    turned, step = kept.T.sum(1), 0
    while step < 3 and x.sum() < 20:
        if x.sum() > 4:
            kept = kept[z.long() % 2]
        kept.index_copy_(1, torch.full((1,), step), x[:, None])
        x = x + kept.transpose(0, 1).sum(0)
        step += 1
    return kept, x, turned


def before_it_is_joined(x: Tensor, z: Tensor, p: Tensor) -> Any:
    if p:
        y = x.add_(1)
    else:
        y = z * 2
    return y * 1, x * 1


@pytest.mark.parametrize(
    "function",
    [
        *(one_of_two, one_that_is_new, in_a_loop, before_it_is_joined),
        *(read_through_a_view, rows_in_another_order),
    ],
)
def test_every_name_sees_the_write(function: Callable[..., Any]) -> None:
    def call(p: bool) -> tuple[Tensor, ...]:
        return torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0]), torch.tensor(p)

    program = sg.export(function, call(True))
    lowered = pipeline.run(program)
    verify(write_to_both(program))
    verify(lowered)
    for p in (True, False):
        theirs, ours = call(p), call(p)
        torch.testing.assert_close(tuple(_run(lowered, ours)), function(*theirs))
        torch.testing.assert_close(ours, theirs)


def _run(program: Program, args: tuple[Any, ...]) -> list[Any]:
    given = {f"args[{index}]": value for index, value in enumerate(args)}
    return list(lower(program, None).run(*(given[str(each.source)] for each in program.inputs)))


def after_a_loop(x: Tensor, p: Tensor) -> Any:
    y = x
    while y.sum() < 10:
        y = y + 1
    y.add_(1)
    return x * 1, y * 1


def through_a_view(x: Tensor, p: Tensor) -> Any:
    y = x if p else x * 2
    y[0].add_(1)
    return x * 1, y * 1


def through_a_view_that_is_read_later(x: Tensor, p: Tensor) -> Any:
    y = x if p else x * 2
    turned = y.view(2, 1)
    y.add_(1)
    return turned * 1


def through_a_view_that_is_returned(x: Tensor, p: Tensor) -> Any:
    y = x if p else x * 2
    y.add_(1)
    return y.view(2, 1), y * 2


def views(x: Tensor, p: Tensor) -> Any:
    y = x[0] if p else x[1]
    y.add_(1)
    return x * 1


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (after_a_loop, "a loop's result is written in place"),
        (through_a_view, "a view of a branch's result is written in place"),
        (through_a_view_that_is_read_later, "a view of a branch's result is written in place"),
        (through_a_view_that_is_returned, "a view of a branch's result is written in place"),
        (views, "a view of one of two tensors is written in place"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(ExportError, match=text) as error:
        pipeline.run(sg.export(function, (torch.ones(2), torch.tensor(True))))
    assert error.value.reason.code == "SG402"
