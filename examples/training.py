"""Training through control flow: a network that thinks longer about harder inputs, and learns while it does.

Run with ``python examples/training.py``.
"""

import copy

import torch
from torch import Tensor, nn

import stillgraph as sg


class Ponder(nn.Module):
    """Refine a state until it settles; the number of steps depends on the data."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.refine = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        state = torch.zeros_like(x)
        change, steps = torch.ones(()), 0
        while change > 0.05 and steps < 12:
            refined = torch.tanh(self.refine(torch.cat([x, state], dim=-1)))
            change = (refined - state).abs().max()
            state = (state + refined) / 2
            steps += 1
        return self.output(state), steps


def train(model: nn.Module, rounds: int = 40) -> list[tuple[float, int]]:
    """Fit the sum of the inputs; the loss and the steps taken, round by round."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    history = []
    for _ in range(rounds):
        x = torch.randn(32, 16, generator=generator)
        optimizer.zero_grad()
        predicted, steps = model(x)
        loss = (predicted - x.sum(dim=-1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        history.append((loss.item(), steps))
    return history


def main() -> None:
    torch.manual_seed(0)
    eager = Ponder()
    static = copy.deepcopy(eager)
    history = train(sg.to_static(static, backend="eager"))
    assert history == train(eager)  # the same losses, bit by bit, and the same steps
    print(f"loss {history[0][0]:.2f} -> {history[-1][0]:.2f}; steps {history[0][1]} -> {history[-1][1]}")


if __name__ == "__main__":
    main()
