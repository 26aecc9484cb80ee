"""Early stopping: the best weights so far are kept, and training ends when they have not been bettered for a while.

Run with ``python examples/early_stopping.py --steps 200``. The judge is a static module: its validation loss decides,
inside the program, whether the best loss, the kept weights and the patience change; its counters are Python numbers.
"""

import argparse
import copy

import torch
from torch import Tensor, nn

import stillgraph as sg


class Judge(nn.Module):
    """Validates a model, and says when to stop."""

    def __init__(self, model: nn.Module, patience: int = 5, least: float = 1e-3) -> None:
        super().__init__()
        self.model = model
        self.best = copy.deepcopy(model)
        self.best_loss, self.best_round = float("inf"), -1
        self.patience, self.least = patience, least
        self.rounds = self.waited = 0

    @torch.no_grad()
    def forward(self, x: Tensor, y: Tensor) -> bool:
        """Whether to stop now."""
        loss = nn.functional.mse_loss(self.model(x), y).item()
        if loss < self.best_loss - self.least:
            self.best_loss, self.best_round, self.waited = loss, self.rounds, 0
            for kept, current in zip(self.best.parameters(), self.model.parameters(), strict=True):
                kept.copy_(current)
        else:
            self.waited += 1
        self.rounds += 1
        return self.waited >= self.patience


def data(seed: int) -> tuple[Tensor, Tensor]:
    """Few and noisy points, so that a model soon learns them by heart."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(24, 4, generator=generator)
    return x, x.sin().sum(dim=1, keepdim=True) + 0.3 * torch.randn(24, 1, generator=generator)


def train(judge: Judge, steps: int) -> list[float]:
    """The validation losses kept as the best, round by round, until the judge has seen enough."""
    optimizer = torch.optim.Adam(judge.model.parameters(), lr=1e-2)
    history = []
    (x, y), (seen_x, seen_y) = data(0), data(1)
    for _ in range(steps):
        loss = nn.functional.mse_loss(judge.model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stop = judge(seen_x, seen_y)
        history.append(judge.best_loss)
        if stop:
            break
    return history


def main(steps: int = 200) -> None:
    torch.manual_seed(0)
    eager = Judge(nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1)))
    static = sg.to_static(copy.deepcopy(eager), backend="eager")
    history = train(static, steps)
    assert history == train(eager, steps)
    assert (static.best_round, static.waited, static.rounds) == (eager.best_round, eager.waited, eager.rounds)
    for mine, theirs in zip(static.best.parameters(), eager.best.parameters(), strict=True):
        assert mine.equal(theirs)
    print(f"stopped after round {static.rounds}; the best was {static.best_round}, with a loss of {history[-1]:.3f}")
    print("the rounds, losses and kept weights are eager's;", static.forward.cache_info().programs, "program")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train until it no longer helps.")
    parser.add_argument("--steps", type=int, default=200)
    main(**vars(parser.parse_args()))
