"""Sequence models: decoding, and steps that depend on lengths."""

import torch
from torch import Tensor, nn

from tests.cases.case import case
from tests.cases.tensors import i64, integers, normal

randn = normal(seed=7)
randint = integers(seed=7)


class GreedyDecoder(nn.Module):
    """A GRU decoder that feeds back its best token until every sequence has ended."""

    def __init__(self, vocabulary: int = 12, hidden: int = 16, eos: int = 8):
        super().__init__()
        self.eos = eos
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, state: Tensor, max_length: int = 20) -> Tensor:
        token = torch.zeros(state.shape[0], dtype=torch.long)
        finished = torch.zeros(state.shape[0], dtype=torch.bool)
        tokens = []
        while len(tokens) < max_length:
            state = self.cell(self.embedding(token), state)
            token = self.output(state).argmax(dim=-1)
            token = token.masked_fill(finished, self.eos)
            tokens.append(token)
            finished = finished | (token == self.eos)
            if finished.all():
                break
        return torch.stack(tokens, dim=1)


case(GreedyDecoder, [(s * randn(2, 16),) for s in (1, 3, 0.1, 8)])


class GrowingDecoder(nn.Module):
    """A decoder that recomputes the whole prefix and appends one token to it."""

    def __init__(self, vocabulary: int = 10, hidden: int = 16, eos: int = 0):
        super().__init__()
        self.eos = eos
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.output = nn.Linear(hidden, vocabulary)

    @torch.no_grad()
    def forward(self, ids: Tensor, max_new_tokens: int = 12) -> Tensor:
        for _ in range(max_new_tokens):
            hidden, _ = self.rnn(self.embedding(ids))
            next_id = self.output(hidden[:, -1]).argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, next_id], dim=1)
            if (next_id == self.eos).all():
                break
        return ids


case(
    GrowingDecoder,
    [(randint(10, 2, 4),), (randint(10, 2, 4),), (randint(10, 1, 3),), (randint(10, 1, 6),)],
    shapes_vary=True,
)


class VariableLengthRNN(nn.Module):
    """Only as many steps as the longest sequence of the batch; a finished sequence keeps its state."""

    def __init__(self, features: int = 4, hidden: int = 8):
        super().__init__()
        self.cell = nn.GRUCell(features, hidden)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        state = x.new_zeros(x.shape[0], self.cell.hidden_size)
        for t in range(int(lengths.max())):
            updated = self.cell(x[:, t], state)
            state = torch.where((lengths > t).unsqueeze(1), updated, state)
        return state


case(
    VariableLengthRNN,
    [(randn(3, 6, 4), i64(n)) for n in ([6, 4, 2], [3, 3, 1], [0, 0, 0], [1, 0, 5])],
    grad=True,
    pgrad=True,
)


def mean_of_valid_rows(x: Tensor, lengths: Tensor) -> Tensor:
    """Per sample, the mean of its first `lengths[b]` rows; zeros for an empty sample."""
    pooled = []
    for b in range(x.shape[0]):
        n = int(lengths[b])
        if n == 0:
            pooled.append(x.new_zeros(x.shape[2]))
        else:
            pooled.append(x[b, :n].mean(dim=0))
    return torch.stack(pooled)


case(mean_of_valid_rows, [(randn(3, 5, 2), i64(n)) for n in ([5, 4, 2], [0, 3, 1], [0, 0, 0])], grad=True)
