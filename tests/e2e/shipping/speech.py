"""Speech: greedy decoding of a transducer, and the collapse of CTC's symbols."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FEATURES, HIDDEN, SYMBOLS, BLANK = 6, 16, 9, 0


class Recurrent(nn.Module):
    """An encoder that hears the frames in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(FEATURES, HIDDEN, batch_first=True)

    def forward(self, features: Tensor) -> Tensor:
        return self.layers(features)[0]


class Convolutional(nn.Module):
    """An encoder that hears the frames around each."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(FEATURES, HIDDEN, 3, padding=1), nn.SiLU(), nn.Conv1d(HIDDEN, HIDDEN, 5, padding=2)
        )

    def forward(self, features: Tensor) -> Tensor:
        return self.layers(features.mT).mT


class Transducer(nn.Module):
    """RNN-T: a frame may give several symbols, and a symbol changes what the next one is."""

    def __init__(self, encoder: nn.Module, max_symbols: int = 3) -> None:
        super().__init__()
        self.max_symbols = max_symbols
        self.encoder = encoder
        self.embedding = nn.Embedding(SYMBOLS, HIDDEN)
        self.predictor = nn.LSTMCell(HIDDEN, HIDDEN)
        self.joiner = nn.Linear(HIDDEN, SYMBOLS)
        with torch.no_grad():
            self.joiner.weight.mul_(8)
            self.joiner.bias[BLANK] += 0.8  # so that some frames are blank and others are not

    @torch.no_grad()
    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        frames = self.encoder(features[None])
        hidden = cell = torch.zeros(1, HIDDEN)
        hidden, cell = self.predictor(self.embedding(torch.tensor([BLANK])), (hidden, cell))
        symbols: list[Tensor] = []
        times: list[int] = []
        t = emitted = 0
        while t < frames.shape[1]:
            symbol = self.joiner(torch.tanh(frames[:, t] + hidden)).argmax(dim=-1)
            if symbol.item() == BLANK or emitted == self.max_symbols:
                t += 1
                emitted = 0
                continue
            symbols.append(symbol)
            times.append(t)
            emitted += 1
            hidden, cell = self.predictor(self.embedding(symbol), (hidden, cell))
        if not symbols:
            return torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
        return torch.cat(symbols), torch.tensor(times)


class Acoustic(nn.Module):
    """CTC, frame by frame: repetitions and blanks are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, SYMBOLS))
        with torch.no_grad():
            self.layers[2].bias[BLANK] += 0.3

    @torch.no_grad()
    def forward(self, features: Tensor) -> tuple[list[int], float]:
        logp = self.layers(features).log_softmax(dim=-1)
        score, previous = 0.0, BLANK
        symbols: list[int] = []
        for frame in logp:
            symbol = frame.argmax().item()
            if symbol != BLANK and symbol != previous:
                symbols.append(symbol)
            score += frame[symbol].item()
            previous = symbol
        return symbols, score


class BatchedAcoustic(Acoustic):
    """CTC for a batch of several lengths, by `unique_consecutive`."""

    @torch.no_grad()
    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        best = self.layers(features).argmax(dim=-1)
        symbols = torch.full_like(best, BLANK)
        counts = torch.zeros_like(lengths)
        for row in range(best.shape[0]):
            collapsed = torch.unique_consecutive(best[row, : lengths[row]])
            collapsed = collapsed[collapsed != BLANK]
            symbols[row, : len(collapsed)] = collapsed
            counts[row] = len(collapsed)
        return symbols[:, : counts.max()], counts
