"""Recurrent layers of sequences whose sizes are open: they are hidden from torch's shape inference.

torch infers the shapes of a recurrent layer by taking its steps one after another, and so takes the example's length
for every sequence's. An operator of our own tells the shapes instead; torch's is put back once inference is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

from stillgraph.passes.regions import all_regions, copied
from stillgraph.passes.values import value_of
from stillgraph.program.program import Program
from stillgraph.program.schemas import RECURRENT


@torch.library.custom_op("stillgraph::lstm", mutates_args=())
def lstm(
    input: Tensor,
    hx: list[Tensor],
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """``torch.lstm`` of padded sequences."""
    given = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
    output, hidden, cell = torch.ops.aten.lstm.input(input, hx, params, *given)
    return output, hidden, cell


@lstm.register_fake
def _(input: Tensor, hx: list[Tensor], params: list[Tensor], *given: Any) -> tuple[Tensor, ...]:
    return _output(input, hx[0], *given), torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _output(input: Tensor, hidden: Tensor, *given: Any) -> Tensor:
    """What has the shape and the strides of a layer's output."""
    directions, batch_first = 1 + given[4], given[5]
    steps, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
    output = input.new_empty((steps, batch, directions * hidden.shape[2]))
    return output.transpose(0, 1) if batch_first else output


def _of_one_state(name: str) -> Any:
    """An operator for a layer with one hidden state."""

    @torch.library.custom_op(f"stillgraph::{name}", mutates_args=())
    def layer(
        input: Tensor,
        hx: Tensor,
        params: list[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, Tensor]:
        given = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
        output, hidden = getattr(torch.ops.aten, name).input(input, hx, params, *given)
        return output, hidden

    layer.register_fake(lambda x, hx, params, *given: (_output(x, hx, *given), torch.empty_like(hx)))
    return layer


gru, rnn_tanh, rnn_relu = (_of_one_state(name) for name in ("gru", "rnn_tanh", "rnn_relu"))

_OURS: dict[Any, Any] = {getattr(torch, name): getattr(torch.ops.stillgraph, name).default for name in RECURRENT}
_TORCHS: dict[Any, Any] = {
    getattr(torch.ops.stillgraph, name).default: getattr(torch.ops.aten, name).input for name in RECURRENT
}


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


def hears_open_sequences(program: Program) -> bool:
    """Whether a recurrent layer takes sequences of open sizes."""
    nodes = (node for module in all_regions(program.graph) for node in module.graph.nodes)
    return any(node.target in _OURS and _is_open(node) for node in nodes)


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
