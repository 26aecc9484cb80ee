"""How often a capture begins anew, and how often it records a call, in exact numbers."""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.program import Program
from tests.unit.trace.agreement import agree

X = torch.tensor([[1.0, 2.0, 3.0]])


class Counting(nn.Module):
    """As many layers have it: each counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.total = 0.5

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.total = self.total * 2
        return x * self.count + self.total


def attempts(program: Program) -> int:
    assert program.record is not None
    return program.record.attempts


def test_numbers_that_many_layers_write_are_found_together() -> None:
    eager, model = (nn.Sequential(*(Counting() for _ in range(6))) for _ in range(2))
    static = sg.to_static(model, backend="eager")
    for x in (X, -X, X):
        assert torch.equal(static(x), eager(x))
    assert [(each.count, each.total) for each in model] == [(each.count, each.total) for each in eager]
    (program,) = static.forward.programs
    assert attempts(program) == 3  # with one number, with the others, and with what follows from them


class Masked(nn.Module):
    """What `generate()` calls: a model by its bound ``__call__``, with a keyword that some paths have."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
        x = self.linear(x)
        return x if mask is None else x * mask

    def decode(self, x: Tensor) -> Tensor:
        given: dict[str, Any] = {"x": x}
        if x.sum() > 0:
            given["mask"] = x > 1
        call = self.__call__
        masked: Tensor = call(**given)
        return masked


def linears(graph: torch.fx.GraphModule) -> int:
    own = sum("linear" in str(node.target) for node in graph.graph.nodes if node.op == "call_function")
    return own + sum(linears(child) for child in graph.children() if isinstance(child, torch.fx.GraphModule))


def test_a_module_called_by_its_bound_call_is_recorded_once() -> None:
    model = Masked()

    def function(x: Tensor) -> Tensor:
        return model.decode(x)

    static = agree(function, X, -X)
    (program,) = static.programs
    assert linears(program.graph) == 1


def test_a_capture_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    sg.to_static(lambda x: x + 1, backend="eager")(X)
    assert gc.get_threshold() == before
