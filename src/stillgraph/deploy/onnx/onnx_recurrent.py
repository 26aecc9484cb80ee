"""Recurrent layers as ONNX's own: one operator for all the steps, so the length of a sequence stays open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18

op: Any = opset18  # its stubs know no values under translation


@dataclass(frozen=True)
class _Kind:
    """A recurrent layer.

    Attributes:
        operator: ONNX's name for it.
        gates: the order in which ONNX wants the gates, by their places in torch's weights.
        attributes: of ONNX's operator.
        activation: of each direction, where ONNX lets one choose.
    """

    operator: str
    gates: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    activation: str | None = None


_LSTM = _Kind("LSTM", (0, 3, 1, 2))  # torch: input, forget, cell, output
_GRU = _Kind("GRU", (1, 0, 2), {"linear_before_reset": 1})  # torch: reset, update, new
_RNN_TANH, _RNN_RELU = _Kind("RNN", (0,), {}, "Tanh"), _Kind("RNN", (0,), {}, "Relu")


def lstm(input: Any, hx: Sequence[Any], params: Sequence[Any], *given: Any) -> Any:
    """``torch.lstm`` of padded sequences."""
    return _layers(_LSTM, input, hx, params, *given)


def gru(input: Any, hx: Any, params: Sequence[Any], *given: Any) -> Any:
    """``torch.gru`` of padded sequences."""
    return _layers(_GRU, input, [hx], params, *given)


def rnn_tanh(input: Any, hx: Any, params: Sequence[Any], *given: Any) -> Any:
    """``torch.rnn_tanh`` of padded sequences."""
    return _layers(_RNN_TANH, input, [hx], params, *given)


def rnn_relu(input: Any, hx: Any, params: Sequence[Any], *given: Any) -> Any:
    """``torch.rnn_relu`` of padded sequences."""
    return _layers(_RNN_RELU, input, [hx], params, *given)


def _layers(
    kind: _Kind,
    input: Any,
    hidden: Sequence[Any],
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """All the layers, with the arguments of ``torch.lstm`` and the others.

    Raises:
        NotImplementedError: ONNX or onnxruntime has none such. `torch.onnx` wraps it, and the save is refused with its
            text.
    """
    directions, each = 1 + bidirectional, 4 if has_biases else 2
    if len(params) != num_layers * directions * each:
        raise NotImplementedError("a projection of the hidden state")
    if input.dtype != ir.DataType.FLOAT:
        raise NotImplementedError("onnxruntime runs recurrent layers in float32 alone")
    if dropout and train:
        raise NotImplementedError("dropout between the layers; call eval() first")
    x = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
    hidden = [_where_there_is_a_step(x, value) for value in hidden]
    number = op.Shape(x, start=1, end=2)
    x, *hidden = [_with_a_sequence(value, number) for value in (x, *hidden)]
    last: list[tuple[Any, ...]] = []
    for layer in range(num_layers):
        begin, end = layer * directions, (layer + 1) * directions
        begins = [op.Slice(value, _ints(begin), _ints(end), _ints(0)) for value in hidden]
        weights = [params[i * each : (i + 1) * each] for i in range(begin, end)]
        x, *ends = _layer(kind, x, begins, weights)
        last.append(tuple(ends))
    ends = [op.Concat(*values, axis=0) if num_layers > 1 else values[0] for values in zip(*last)]
    x, *ends = [op.Slice(value, _ints(0), number, _ints(1)) for value in (x, *ends)]
    return (op.Transpose(x, perm=[1, 0, 2]) if batch_first else x, *ends)


def _layer(kind: _Kind, x: Any, begins: list[Any], weights: list[Sequence[Any]]) -> Any:
    """One layer: the outputs of all directions side by side, and the last states."""
    directions, size = len(weights), weights[0][1].shape[1]
    stacked = [_stacked([_in_order(kind, weight[i]) for weight in weights]) for i in range(len(weights[0]))]
    biases = op.Concat(*stacked[2:], axis=1) if stacked[2:] else None
    attributes = {"hidden_size": size, "direction": "bidirectional" if directions == 2 else "forward"}
    if kind.activation is not None:
        attributes["activations"] = [kind.activation] * directions
    function = getattr(op, kind.operator)
    made, *ends = function(x, *stacked[:2], biases, None, *begins, **attributes, **kind.attributes)
    side_by_side = op.Transpose(made, perm=[0, 2, 1, 3])
    return (op.Reshape(side_by_side, op.Constant(value_ints=[0, 0, directions * size])), *ends)


def _in_order(kind: _Kind, weight: Any) -> Any:
    """The rows of a weight or bias, the gates in ONNX's order."""
    if len(kind.gates) == 1:
        return weight
    gates = op.Split(weight, num_outputs=len(kind.gates), axis=0)
    return op.Concat(*(gates[gate] for gate in kind.gates), axis=0)


def _stacked(values: list[Any]) -> Any:
    """A value for each direction, along a new first axis."""
    leading = [op.Unsqueeze(value, _ints(0)) for value in values]
    return op.Concat(*leading, axis=0) if len(leading) > 1 else leading[0]


def _where_there_is_a_step(x: Any, hidden: Any) -> Any:
    """The first state; without a step an index out of bounds, as torch wants at least one."""
    steps = op.Shape(x, start=0, end=1)
    place = op.Sub(_ints(1), op.Min(steps, _ints(1)))
    return op.Squeeze(op.Gather(op.Unsqueeze(hidden, _ints(0)), place, axis=0), _ints(0))


def _with_a_sequence(value: Any, number: Any) -> Any:
    """Sequences, or the state of each; zeros for one where there is none, for which onnxruntime (1.32) aborts."""
    lacking = op.Sub(_ints(1), op.Min(number, _ints(1)))
    return op.Pad(value, op.Concat(_ints(0), lacking, axis=0), None, _ints(1))


def _ints(value: int) -> Any:
    return op.Constant(value_ints=[value])


_LAYERS = {"lstm": lstm, "gru": gru, "rnn_tanh": rnn_tanh, "rnn_relu": rnn_relu}

TABLE: dict[Any, Any] = {getattr(torch.ops.stillgraph, name).default: layer for name, layer in _LAYERS.items()}
