"""The reference interpreter: what it tells its observer, and where it says an error came from."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, fx
from torch.utils.checkpoint import checkpoint

import stillgraph as sg
from stillgraph.program.blocks import Block
from stillgraph.program.interpreter import failing_node, interpret


class Told:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.exits: list[str] = []
        self.nodes: Counter[str] = Counter()
        self.inputs: list[tuple[Any, ...]] = []

    def entered(self, block: Block, inputs: tuple[Any, ...]) -> None:
        self.entries.append(block.role)
        self.inputs.append(inputs)

    def left(self, block: Block, outputs: tuple[Any, ...]) -> None:
        self.exits.append(block.role)

    def computed(self, block: Block, node: fx.Node, value: Any) -> None:
        assert node in block.module.graph.nodes
        self.nodes[str(node.target)] += 1


def doubled_until(x: Tensor, limit: Tensor) -> Tensor:
    while x.sum() < limit:
        x = x * 2
    if x.max() > 10:
        x = x - 1
    else:
        x = x.inverse()
    return x


def test_an_observer_is_told_of_regions_and_values_in_order() -> None:
    program, told = sg.export(doubled_until, (torch.ones(2, 2), torch.tensor(7.0))), Told()
    (result,) = interpret(program, (torch.full((2, 2), 3.0), torch.tensor(90.0)), told)
    assert result.tolist() == [[23.0, 23.0], [23.0, 23.0]]
    loop = ["test", "body"] * 3 + ["test"]
    assert told.entries == ["top", *loop, "then"]
    assert told.exits == [*loop, "then", "top"]
    assert told.nodes["<built-in function mul>"] == 3
    assert told.inputs[0][1].item() == 90.0


def test_an_error_knows_its_node() -> None:
    program, told = sg.export(doubled_until, (torch.ones(2, 2), torch.tensor(7.0))), Told()
    with pytest.raises(RuntimeError) as raised:
        interpret(program, (torch.ones(2, 2), torch.tensor(0.0)), told)
    node = failing_node(raised.value)
    assert node is not None
    assert node.target == "inverse"
    assert node.meta["location"].source_line().strip() == "x = x.inverse()"
    assert told.exits == ["test"]


def recovering(x: Tensor) -> Tensor:
    y = x
    try:
        y = x + 1
        if x.sum() < 0:
            raise ValueError("negative")
        y = y * 2
    except ValueError as error:
        y = y * 10
        print(error)
    return y


def test_a_handled_exception(capsys: pytest.CaptureFixture[str]) -> None:
    program = sg.export(recovering, (torch.ones(2),))
    (result,) = interpret(program, (torch.full((2,), -2.0),))
    assert result.tolist() == [-10.0, -10.0]
    assert capsys.readouterr().out == "negative\n"
    (result,) = interpret(program, (torch.ones(2),))
    assert result.tolist() == [4.0, 4.0]


def test_what_a_checkpoint_computes_again_is_not_told() -> None:
    def inner(x: Tensor) -> Tensor:
        return (x * x).sin()

    def outer(x: Tensor) -> Tensor:
        return checkpoint(inner, x, use_reentrant=False).sum()  # type: ignore[no-any-return]

    x = torch.ones(2, requires_grad=True)
    program, told = sg.export(outer, (x,)), Told()
    (result,) = interpret(program, (x,), told)
    before = list(told.entries)
    result.backward()
    assert "body" in before
    assert told.entries == before
    expected = torch.ones(2, requires_grad=True)
    outer(expected).backward()
    assert torch.equal(x.grad, expected.grad)  # type: ignore[arg-type]


def test_modes_are_those_of_the_capture_and_left_as_they_were() -> None:
    def mixed(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = x * 2
        return x * 2, y

    program = sg.export(mixed, (torch.ones(2, requires_grad=True),))
    traced, plain = interpret(program, (torch.ones(2, requires_grad=True),))
    assert (traced.requires_grad, plain.requires_grad) == (True, False)
    assert torch.is_grad_enabled()
