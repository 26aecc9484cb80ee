"""Packed sequences: packed inside or given, through recurrent layers, padded again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

from tests.unit.trace.agreement import agree, agree_fresh

X = torch.randn(3, 5, 3)
G = X.clone().requires_grad_()


class _Reader(nn.Module):
    """Reads sequences of several lengths; ``sorted`` and ``first`` are how they are packed."""

    def __init__(self, layer: nn.Module, sorted: bool, first: bool) -> None:
        super().__init__()
        self.layer, self.sorted, self.first = layer, sorted, first
        self.head = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), 2)

    def forward(self, x: Tensor, lengths: Any) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=self.first, enforce_sorted=self.sorted)
        output, hidden = self.layer(packed)
        output, counts = pad_packed_sequence(output, batch_first=self.first)
        last = hidden[0] if isinstance(hidden, tuple) else hidden
        return self.head(output), counts, hidden, torch.cat([last[-1], x.mean(1 if self.first else 0)], 1)


READERS = [
    (lambda: _Reader(nn.LSTM(3, 4, batch_first=True), False, True), [5, 3, 2], [2, 5, 1]),
    (lambda: _Reader(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), True, True), [5, 3, 2], [4, 4, 1]),
    (lambda: _Reader(nn.GRU(3, 4, batch_first=True), False, True), [5, 3, 2], [2, 5, 1]),
    (lambda: _Reader(nn.RNN(3, 4), False, False), [3, 3, 2, 1, 1], [1, 2, 3, 1, 1]),
]


@pytest.mark.parametrize(("make", "first", "second"), READERS)
def test_lengths_as_a_tensor(make: Any, first: list[int], second: list[int]) -> None:
    agree_fresh(make, (G, torch.tensor(first)), (G, torch.tensor(second)), (G, torch.tensor(first) * 0))


def test_lengths_as_a_list() -> None:
    agree_fresh(READERS[0][0], (G, [5, 3, 2]), (G, [5, 3, 2]))


def test_a_packed_sequence_as_an_argument() -> None:
    given = [pack_sequence([torch.randn(4, 3), torch.randn(size, 3)]) for size in (2, 3)]
    agree_fresh(lambda: nn.LSTM(3, 4), *((packed,) for packed in given), programs=2)


def packed_and_returned(x: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(x * 2, lengths, True, False)


def sized_by_a_tensor(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.zeros(2, lengths[0], 3).sum() + torch.ones((lengths[1], 2)).sum() + x.sum()


@pytest.mark.parametrize("function", [packed_and_returned, sized_by_a_tensor])
def test_functions(function: Any) -> None:
    agree(function, (X, torch.tensor([5, 3, 2])), (X, torch.tensor([2, 5, 1])))
