"""A mixture of experts: each word goes to the two experts its router likes best, if they have room.

Run with ``python examples/mixture_of_experts.py --steps 60``. How many words an expert gets, and whether it gets any,
is for the data to say: ``if asking.any()`` around each expert, a capacity beyond which words are dropped,
``index_add_`` to put the results together, and a loss that asks the router to keep all experts busy.
"""

import argparse
import copy

import torch
from torch import Tensor, nn

import stillgraph as sg


class Experts(nn.Module):
    """A layer of experts of which each word uses ``top``."""

    def __init__(self, width: int = 16, experts: int = 6, top: int = 2, capacity: float = 1.25) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )
        self.top, self.capacity = top, capacity

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor, int]:
        """The words transformed; the balancing loss; how many expert calls there was no room for."""
        probabilities = self.router(words).softmax(dim=-1)
        weights, chosen = probabilities.topk(self.top, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        room = int(self.capacity * self.top * words.shape[0] / len(self.experts))
        output, dropped = torch.zeros_like(words), 0
        for number, expert in enumerate(self.experts):
            asking = chosen == number
            if asking.any():
                rows, places = torch.where(asking)
                if len(rows) > room:
                    dropped += len(rows) - room
                    rows, places = rows[:room], places[:room]
                output.index_add_(0, rows, expert(words[rows]) * weights[rows, places].unsqueeze(-1))
        share = nn.functional.one_hot(chosen, len(self.experts)).float().mean(dim=(0, 1))
        balance = len(self.experts) * (share * probabilities.mean(dim=0)).sum()
        return output, balance, dropped


class Model(nn.Module):
    """Two layers of experts, each added to what it is given."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Experts(width) for _ in range(2))
        self.output = nn.Linear(width, 4)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor, int]:
        balance, dropped = torch.zeros(()), 0
        for layer in self.layers:
            change, unbalanced, full = layer(words)
            words = words + change
            balance = balance + unbalanced
            dropped += full
        return self.output(words), balance, dropped


def train(model: nn.Module, steps: int) -> list[tuple[float, int]]:
    """The loss and the dropped expert calls, step by step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    history = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        words = torch.randn(64, 16, generator=generator) + 2 * torch.randn(1, 16, generator=generator)
        kind = 2 * (words[:, 0] > 0).long() + (words[:, 1] * words[:, 2] > 0).long()
        predicted, balance, dropped = model(words)
        loss = nn.functional.cross_entropy(predicted, kind) + 0.02 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((loss.item(), dropped))
    return history


def main(steps: int = 60) -> None:
    torch.manual_seed(0)
    eager = Model()
    static = sg.to_static(copy.deepcopy(eager), backend="eager")
    history = train(static, steps)
    assert history == train(eager, steps)
    (loss, dropped), (last_loss, last_dropped) = history[0], history[-1]
    print(f"loss {loss:.3f} -> {last_loss:.3f}, dropped {dropped} -> {last_dropped}: the same in eager, bit by bit")
    print(static.forward.cache_info().programs, "program for every routing")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a mixture of experts.")
    parser.add_argument("--steps", type=int, default=60)
    main(**vars(parser.parse_args()))
