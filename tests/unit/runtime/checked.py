"""What the tests of the shadow check call: state of every kind, and backends and captures that go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, fx, nn

import stillgraph as sg
from stillgraph.program.graphs import regions
from stillgraph.program.program import Program

HISTORY: list[float] = []
COUNT = 0


class Layer(nn.Module):
    """Buffers, dropout, counters, a list that grows, prints."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear, self.dropout = nn.BatchNorm1d(3), nn.Linear(3, 3), nn.Dropout(0.5)
        self.steps, self.log = 0, []

    def forward(self, x: Tensor) -> dict[str, Any]:
        self.steps += 1
        y = self.dropout(self.norm(self.linear(x)))
        if y.sum() > 0:
            print("positive", self.steps)
            y = y * 2
        self.log.append(self.steps)
        return {"y": y, "steps": self.steps}


def writes_globals(x: Tensor) -> Tensor:
    global COUNT
    COUNT += 1
    HISTORY.append(COUNT)
    return x * COUNT


def in_place(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    if x.sum() > 0:
        x.mul_(2)
    return x


def raising(x: Tensor, log: list[int]) -> Tensor:
    log.append(1)
    if x.sum() < 0:
        raise ValueError("negative")
    return x


def branched(x: Tensor) -> Tensor:
    y = x * 2
    if y.sum() > 0:
        z = y + 1
        y = torch.sin(z) * 3
    else:
        y = torch.exp(y)
    return y


def looped(x: Tensor, limit: Tensor) -> Tensor:
    while x.sum() < limit:
        x = x + 1
        x = torch.sqrt(x) + x
    return x


def line_of(function: Callable[..., Any], text: str) -> int:
    """The line of a function that contains a text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def wrong_backend(module: fx.GraphModule, inputs: list[Any]) -> Any:
    """Computes the cosine for the sine."""
    swap(module, torch.sin, torch.cos)
    return module.forward


def swap(graph: fx.GraphModule, target: Any, other: Any) -> None:
    """Have every operation of one kind in a graph be of another."""
    for region in regions(graph):
        for node in region.graph.nodes:
            if node.target is target:
                node.target = other
        region.recompile()


def miscaptured(function: Any, target: Any, other: Any, **options: Any) -> Any:
    """A static function that takes one operation for another when it captures."""

    def wrong(program: Program) -> Program:
        swap(program.graph, target, other)
        return program

    return _changed(function, wrong, **options)


def unguarded(function: Any, **options: Any) -> Any:
    """A static function that guards nothing."""
    return _changed(function, lambda program: replace(program, guards=()), **options)


def _changed(function: Any, change: Callable[[Program], Program], **options: Any) -> Any:
    static = sg.to_static(function, backend="eager", **options)
    capture = static._capture
    static._capture = lambda args, kwargs: change(capture(args, kwargs))
    return static
