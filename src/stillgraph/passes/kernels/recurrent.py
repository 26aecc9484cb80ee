"""Recurrent layers of sequences whose sizes are open: they are hidden from torch's shape inference.

torch infers the shapes of a recurrent layer by taking its steps one after another, and so takes the example's length
for every sequence's. An operator of our own tells the shapes instead; torch's is put back once inference is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.facts.schemas import RECURRENT
from stillgraph.program.program import Program


def _operator(name: str) -> Any:
    """An operator of our own that does what ATen's of the same name does, and has its schema."""
    theirs = getattr(torch.ops.aten, name).input
    schema = str(theirs._schema).removeprefix(f"aten::{name}.input")
    ours = torch.library.custom_op(
        f"stillgraph::{name}", lambda *given: tuple(theirs(*given)), mutates_args=(), schema=schema
    )
    ours.register_fake(_shaped)
    return getattr(torch.ops.stillgraph, name).default


def _shaped(input: Tensor, hidden: Any, params: Sequence[Tensor], *given: Any) -> tuple[Tensor, ...]:
    """What has the shapes and the strides of a layer's output and last states.

    Args:
        input: of shape (steps, batch, features), or (batch, steps, features) where the batch comes first.
        hidden: the first state, or for ``lstm`` a sequence of the two.
        params: the weights.
        given: whether there are biases, the number of layers, the dropout, whether it is on, whether the layers go both
            ways, whether the batch comes first.
    """
    states = [hidden] if isinstance(hidden, Tensor) else hidden
    directions, batch_first = 1 + given[4], given[5]
    steps, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
    output = input.new_empty((steps, batch, directions * states[0].shape[2]))
    return (output.transpose(0, 1) if batch_first else output, *map(torch.empty_like, states))


_OPERATORS = {name: _operator(name) for name in sorted(RECURRENT)}
_OURS: dict[Any, Any] = {getattr(torch, name): ours for name, ours in _OPERATORS.items()}
_TORCHS: dict[Any, Any] = {ours: getattr(torch.ops.aten, name).input for name, ours in _OPERATORS.items()}


def hide_recurrent(program: Program) -> Program:
    """Put our operators in the place of recurrent layers that take sequences of open sizes.

    ::

        torch.lstm(x, …)     →     stillgraph.lstm(x, …)
    """
    fresh = copied(program)
    _replace(fresh.graph, _OURS, _is_open)
    return fresh


def show_recurrent(module: fx.GraphModule) -> None:
    """Put torch's operators back, once torch's shape inference is done with a graph.

    Args:
        module: of an exported program, changed in place.
    """
    _replace(module, _TORCHS, lambda node: True)


def open_layer(program: Program) -> fx.Node | None:
    """The first recurrent layer that takes sequences of open sizes."""
    nodes = (node for module in all_regions(program.graph) for node in module.graph.nodes)
    return next((node for node in nodes if node.target in _OURS and _is_open(node)), None)


def _replace(module: fx.GraphModule, table: dict[Any, Any], wanted: Callable[[fx.Node], bool]) -> None:
    for region in all_regions(module):
        for node in region.graph.nodes:
            if node.target in table and wanted(node):
                node.target = table[node.target]
        region.recompile()


def _is_open(node: fx.Node) -> bool:
    """Whether a layer takes padded sequences, and their length or number is only known in the run."""
    if len(node.args) != 9 or not isinstance(node.args[8], bool) or isinstance(node.args[3], (list, tuple)):
        return False
    sizes = value_of(node.args[0]).shape[:2]
    return any(type(size) is not int for size in sizes)
