"""A step of a recurrent layer on rows that only the run counts."""
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

torch.manual_seed(0)
LSTM, GRU, RNN = nn.LSTMCell(3, 2), nn.GRUCell(3, 2), nn.RNNCell(3, 2)


def lstm(rows: Tensor, hidden: Tensor) -> Tensor:
    place = int(rows[:, 0].argmax())
    h, c = LSTM(rows[place : place + 1], (hidden, hidden * 2))
    return h + c


def gru(rows: Tensor, hidden: Tensor) -> Tensor:
    place = int(rows[:, 0].argmax())
    return GRU(rows[place : place + 1], hidden)  # type: ignore[no-any-return]  # of a module


def looped(rows: Tensor, hidden: Tensor) -> Tensor:
    given, steps = rows[-1:], 0
    while hidden.sum() < 0.6 + rows[0, 0] and steps < 5:
        hidden, steps = GRU(given, hidden) + 0.1, steps + 1
        place = int(hidden.argmax())
        given = rows[place : place + 1]
    return hidden


def masked(rows: Tensor, hidden: Tensor) -> Tensor:
    return RNN(rows[rows[:, 0] > 0], hidden)  # type: ignore[no-any-return]  # of a module


def handled(rows: Tensor, hidden: Tensor) -> Tensor:
    try:
        return LSTM(rows[rows[:, 0] > 0], (hidden, hidden))[0]  # type: ignore[no-any-return]  # of a module
    except RuntimeError:
        return hidden - 1


ROWS = torch.tensor([[0.1, 2.0, 3.0], [-1.0, 0.5, 0.0], [-0.2, 1.0, 1.0]])


@pytest.mark.parametrize("function", [lstm, gru, looped, masked, handled])
# Inductor fuses a cell's operations, which rounds otherwise in the last bit.
@pytest.mark.parametrize(("backend", "error"), [("eager", 0.0), ("aot_eager", 0.0), ("inductor", 1e-6)])
def test_of_one_row(function: Callable[[Tensor, Tensor], Tensor], backend: str, error: float) -> None:
    static = sg.to_static(function, full_graph=True, backend=backend)
    for rows in (ROWS, ROWS.roll(1, 0), ROWS * torch.tensor([1.0, -2.0, 1.0])):
        hidden = torch.zeros(1, 2, requires_grad=True)
        found, wanted = static(rows, hidden), function(rows, hidden)
        torch.testing.assert_close(found, wanted, rtol=error, atol=error)
        gradients = [torch.autograd.grad(result.sum(), hidden) for result in (found, wanted)]
        torch.testing.assert_close(*gradients, rtol=error, atol=error)
    assert len(static.programs) == 1


@pytest.mark.parametrize("count", [0, 2])
def test_of_other_rows(count: int) -> None:
    hidden = torch.zeros(1, 2)
    rows = torch.where(torch.arange(3)[:, None] < count, 1.0, -1.0) * torch.ones(3, 3)
    static = sg.to_static(masked, full_graph=True)
    static(ROWS, hidden)
    with pytest.raises(RuntimeError) as wanted:
        masked(rows, hidden)
    with pytest.raises(RuntimeError) as found:
        static(rows, hidden)
    assert str(found.value) == str(wanted.value)
    handler = sg.to_static(handled, full_graph=True)
    handler(ROWS, hidden)
    assert torch.equal(handler(rows, hidden), handled(rows, hidden))
