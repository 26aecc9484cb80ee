"""Training on several processes with DistributedDataParallel, each of them on its part of every batch.

Run with ``torchrun --nproc-per-node 2 examples/train_ddp.py --steps 30``; ``python examples/train_ddp.py`` runs one
process. The network thinks longer about harder inputs, so the processes take different paths through one program. The
losses are those of eager PyTorch on the whole batch in one process.
"""

import argparse
import os

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

import stillgraph as sg


class Ponder(nn.Module):
    """Refines a state until it settles; one of two heads answers."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.refine = nn.Linear(2 * width, width)
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        state, change, steps = torch.zeros_like(x), torch.ones(()), 0
        while change > 0.05 and steps < 12:
            refined = torch.tanh(self.refine(torch.cat([x, state], dim=-1)))
            change = (refined - state).abs().max()
            state = (state + refined) / 2
            steps += 1
        if state.mean() > 0:
            return self.heads[0](state), steps
        else:
            return self.heads[1](state), steps


def part(step: int, rank: int) -> tuple[Tensor, Tensor]:
    """The part of a batch that falls to one process. The parts differ, and so do the paths they take."""
    x = (1 + rank) * torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * rank + step)) + rank - 0.5
    return x.double(), x.double().mean(dim=1, keepdim=True)


def train(model: nn.Module, parameters: list[Tensor], steps: int, ranks: list[int]) -> tuple[list[float], list[int]]:
    """Train on the parts of some ranks: the mean loss and the steps of the first part, step by step."""
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    losses, thought = [], []
    for step in range(steps):
        results = [(model(x), y) for x, y in (part(step, rank) for rank in ranks)]
        loss = sum(nn.functional.mse_loss(predicted, y) for (predicted, _), y in results) / len(ranks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        thought.append(results[0][0][1])
    return losses, thought


def main(steps: int = 30) -> None:
    distributed.init_process_group("gloo", **({} if "RANK" in os.environ else _alone()))
    rank, ranks = distributed.get_rank(), list(range(distributed.get_world_size()))
    torch.manual_seed(0)
    whole = Ponder().double()
    torch.manual_seed(0)
    static = sg.to_static(Ponder().double(), backend="eager")
    parallel = DistributedDataParallel(static, find_unused_parameters=True)
    losses, thought = train(parallel, list(parallel.parameters()), steps, [rank])
    mean = torch.tensor(losses, dtype=torch.float64)
    distributed.all_reduce(mean)
    expected, _ = train(whole, list(whole.parameters()), steps, ranks)
    torch.testing.assert_close((mean / len(ranks)).tolist(), expected, rtol=0, atol=1e-9)
    for mine, theirs in zip(static.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-9)
    print(f"process {rank}: loss {losses[0]:.3f} -> {losses[-1]:.3f}, thought {thought[0]} to {thought[-1]} steps")
    distributed.barrier()
    if rank == 0:
        print(f"{len(ranks)} process(es): losses and weights are those of one process with the whole batch")
    distributed.destroy_process_group()


def _alone() -> dict[str, object]:
    """How a process group of one is made without ``torchrun``."""
    return {"store": distributed.HashStore(), "rank": 0, "world_size": 1}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train on several processes.")
    parser.add_argument("--steps", type=int, default=30)
    main(**vars(parser.parse_args()))
