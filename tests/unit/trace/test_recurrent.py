"""Recurrent layers of sequences whose length and number are open."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree_fresh

X, G = torch.randn(4, 5, 3), torch.randn(4, 5, 3, requires_grad=True)
OPEN = [sg.InputSpec([None, None, 3])]

LAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lstm": (nn.LSTM, {}),
    "lstm of two layers, both ways": (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "lstm without bias": (nn.LSTM, {"bias": False}),
    "lstm with a projection": (nn.LSTM, {"proj_size": 2}),
    "lstm in float64": (nn.LSTM, {"dtype": torch.float64}),
    "gru": (nn.GRU, {"batch_first": True}),
    "gru of two layers, both ways": (nn.GRU, {"num_layers": 2, "bidirectional": True}),
    "rnn": (nn.RNN, {}),
    "rnn with relu": (nn.RNN, {"nonlinearity": "relu", "bidirectional": True, "batch_first": True}),
}


class Heard(nn.Module):
    """A layer, what can be asked of its output, and a decision on it."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layer = kind(3, 4, **options)

    def forward(self, x: Tensor) -> Any:
        output, hidden = self.layer(x.to(next(self.parameters()).dtype))
        asked = output.shape, output.stride(), output.is_contiguous(), output.dtype, output.requires_grad
        if output.sum() > 0:
            output = output * 2
        return output, hidden, asked


@pytest.mark.parametrize("name", LAYERS)
def test_one_program_hears_every_length_and_number(name: str) -> None:
    kind, options = LAYERS[name]
    agree_fresh(
        lambda: Heard(kind, **options),
        *((given,) for given in (X, -X[:2, :3], torch.ones(7, 2, 3))),
        input_spec=OPEN,
    )


@pytest.mark.parametrize("name", ["lstm of two layers, both ways", "gru", "rnn"])
def test_gradients(name: str) -> None:
    kind, options = LAYERS[name]
    given = [(G,), (torch.ones(7, 2, 3, requires_grad=True),)]
    agree_fresh(lambda: Heard(kind, **options), *given, input_spec=OPEN)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_without_a_step_eager_s_error(kind: Any) -> None:
    agree_fresh(lambda: Heard(kind), (X,), (torch.ones(0, 2, 3),), input_spec=OPEN)


def test_a_state_that_is_given() -> None:
    class Streamed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.GRU(3, 4, batch_first=True)

        def forward(self, x: Tensor, state: Tensor) -> Any:
            while state.abs().max() < 0.5:
                x, state = self.layer(x, state)[0][..., :3] * 3, state + 0.3
            return x, state

    batch = sg.Dim("batch")
    spec = [sg.InputSpec([batch, None, 3]), sg.InputSpec([1, batch, 4])]
    calls = [(X, torch.zeros(1, 4, 4)), (-X[:2, :2], torch.ones(1, 2, 4)), (-X[:3, :4], torch.ones(1, 3, 4) / 3)]
    agree_fresh(Streamed, *calls, input_spec=spec)


def test_a_sequence_that_grows_in_a_loop() -> None:
    class Grown(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            while x.shape[0] < 6 and x.sum() < 100:
                x = torch.cat([x, self.layer(x)[0][-1:] + 5])
            return x

    agree_fresh(Grown, (X[:2],), (X[:3] * 100 + 100,), (X[:3],), input_spec=[sg.InputSpec([None, 5, 3])])
