"""Which operations write in place, and to which of their arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import stillgraph as sg
from stillgraph.program.facts.writes import writes_in_place, written_arguments
from stillgraph.program.graphs import regions

X = torch.arange(6.0) + 1


def adds_in_place(x: Tensor, y: Tensor) -> Tensor:
    x += y
    return x * 1


def stores(x: Tensor, y: Tensor) -> Tensor:
    x[0] = y[0]
    return x * 1


def gives_out(x: Tensor, y: Tensor) -> Tensor:
    torch.add(y, 1, out=x)
    return x * 1


def activates_in_place(x: Tensor, y: Tensor) -> Tensor:
    F.relu(x, inplace=True)
    return x + y


def writes_to_several(x: Tensor, y: Tensor) -> Tensor:
    torch._foreach_add_([x], 1)
    return x + y


def replaces_its_data(x: Tensor, y: Tensor) -> Tensor:
    x.data = y * 1
    return x * 1


def writes_in_one_arm(x: Tensor, y: Tensor) -> Tensor:
    if y.sum() > 0:
        x.zero_()
    return x * 1


def only_reads(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x, y).relu()


def has_operators_with_an_underscore(x: Tensor, y: Tensor) -> Tensor:
    return operator.and_(x > 1, y > 1) | operator.or_(x > 2, y > 2)


def decides(x: Tensor, y: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 and not y.sum() > 0 else x - 1


@pytest.mark.parametrize(
    ("function", "written"),
    [
        (adds_in_place, {"x"}),
        (stores, {"x"}),
        (gives_out, {"x"}),
        (activates_in_place, {"x"}),
        (writes_to_several, {"x"}),
        (replaces_its_data, {"x"}),
        (writes_in_one_arm, {"x"}),
        (only_reads, set()),
        (has_operators_with_an_underscore, set()),
        (decides, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_a_function_writes_to(function: Callable[[Tensor, Tensor], Tensor], written: set[str]) -> None:
    graph = sg.to_static(function, backend="eager").get_program(X.clone(), X.clone()).graph
    nodes = [node for region in regions(graph) for node in region.graph.nodes]
    assert {str(argument) for node in nodes for argument in written_arguments(node)} == written
    assert writes_in_place(graph) is bool(written)


def test_running_statistics_are_written_to_but_do_not_make_arguments_matter() -> None:
    def normalises(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        return F.batch_norm(x, mean, variance, training=True)

    program = sg.to_static(normalises, backend="eager").get_program(torch.randn(4, 6), X.clone(), X.clone())
    written = [str(argument) for node in program.graph.graph.nodes for argument in written_arguments(node)]
    assert written == ["mean", "variance"]
    assert not writes_in_place(program.graph)
