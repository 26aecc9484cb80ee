"""A greedy decoding loop that grows its text, captured once for texts of every length.

Run with ``python examples/decoding_loop.py``.
"""

import torch
from torch import Tensor, nn

import stillgraph as sg


class Decoder(nn.Module):
    """A small recurrent language model that decodes by itself."""

    def __init__(self, vocabulary: int = 12, hidden: int = 24, eos: int = 10, max_length: int = 20) -> None:
        super().__init__()
        self.eos, self.max_length = eos, max_length
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, token: Tensor, state: Tensor) -> Tensor:
        tokens = token.unsqueeze(1)
        while (token != self.eos).any() and tokens.shape[1] < self.max_length:
            state = self.cell(self.embedding(token), state)
            token = self.output(state).argmax(dim=-1)
            tokens = torch.cat([tokens, token.unsqueeze(1)], dim=1)
        return tokens


def main() -> None:
    torch.manual_seed(0)
    decoder = Decoder().eval()
    starts = [(torch.randint(4, 12, (1,)), 2 * torch.randn(1, 24)) for _ in range(5)]
    with torch.no_grad():
        expected = [decoder(*start) for start in starts]
        static = sg.to_static(decoder, backend="eager")
        for start, tokens in zip(starts, expected, strict=True):
            assert torch.equal(static(*start), tokens)
            print(*tokens[0].tolist())
        print(static.forward.get_program(*starts[0]))


if __name__ == "__main__":
    main()
