"""Adaptive computation time (Graves, 2016): a recurrent network that decides for each word how long to think about it.

Run with ``python examples/adaptive_computation.py --steps 100``. The inner loop goes on while any sequence of the batch
has not halted: how often is for the data to say. The ponder cost, the price of thinking, is part of the loss. The task
is counting: how many ones there were so far.
"""

import argparse
import copy

import torch
from torch import Tensor, nn

import stillgraph as sg


class AdaptiveRNN(nn.Module):
    """A recurrent cell that is applied to each input until its halting probabilities add up to one."""

    def __init__(self, inputs: int = 3, width: int = 32, most: int = 8, epsilon: float = 0.01) -> None:
        super().__init__()
        self.cell = nn.GRUCell(inputs + 1, width)  # one input more: whether it is the first look
        self.halt = nn.Linear(width, 1)
        self.output = nn.Linear(width, 1)
        self.width, self.most, self.epsilon = width, most, epsilon

    def think(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor, int]:
        """The state after one input: the mean of those it went through, each weighted by its halting probability."""
        halted = torch.zeros(x.shape[0])  # the probability so far
        ponder = torch.zeros(x.shape[0])
        mean = torch.zeros_like(state)
        looks = 0
        while looks < self.most and (halted < 1 - self.epsilon).any():
            first = torch.ones(x.shape[0], 1) if looks == 0 else torch.zeros(x.shape[0], 1)
            state = self.cell(torch.cat([x, first], dim=1), state)
            probability = torch.sigmoid(self.halt(state)).squeeze(1)
            running = halted < 1 - self.epsilon
            last = (halted + probability >= 1 - self.epsilon) | (looks == self.most - 1)
            weight = torch.where(last, 1 - halted, probability) * running
            ponder = ponder + running + torch.where(last, weight, torch.zeros(())) * running
            mean = mean + weight.unsqueeze(1) * state
            halted = halted + weight
            looks += 1
        return mean, ponder, looks

    def forward(self, sequence: Tensor) -> tuple[Tensor, Tensor, int]:
        """For each place the output; the mean ponder cost; how many looks there were in all."""
        state = torch.zeros(sequence.shape[1], self.width)
        outputs, cost, looks = [], torch.zeros(()), 0
        for x in sequence:
            state, ponder, taken = self.think(x, state)
            outputs.append(self.output(state))
            cost = cost + ponder.mean()
            looks += taken
        return torch.cat(outputs, dim=1), cost / len(outputs), looks


def train(model: nn.Module, steps: int) -> list[tuple[float, int]]:
    """The loss and the looks, step by step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    history = []
    for step in range(steps):
        bits = torch.randint(0, 2, (5, 32, 3), generator=torch.Generator().manual_seed(step)).float()
        predicted, cost, looks = model(bits)
        loss = nn.functional.mse_loss(predicted, bits.sum(-1).cumsum(0).T) + 0.01 * cost
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((loss.item(), looks))
    return history


def main(steps: int = 100) -> None:
    torch.manual_seed(0)
    eager = AdaptiveRNN()
    static = sg.to_static(copy.deepcopy(eager), backend="eager")
    history = train(static, steps)
    assert history == train(eager, steps)
    (loss, looks), (last_loss, last_looks) = history[0], history[-1]
    print(f"loss {loss:.3f} -> {last_loss:.3f}, looks {looks} -> {last_looks}: the same in eager, bit by bit")
    print(static.forward.cache_info().programs, "program for every number of looks")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a recurrent network that thinks as long as it needs.")
    parser.add_argument("--steps", type=int, default=100)
    main(**vars(parser.parse_args()))
