"""Gradient accumulation: an optimizer step for every few batches; a batch whose gradient is not finite does not count.

Run with ``python examples/gradient_accumulation.py --steps 40``. One static function does it all: the forward pass of a
batch, its gradients, the decision whether they are finite, and adding them up. Some batches overflow on purpose.
"""

import argparse
import copy

import torch
from torch import Tensor, nn

import stillgraph as sg

EVERY = 4  # batches for one step of the optimizer


class Accumulator(nn.Module):
    """Adds up the gradients of a model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.totals = [torch.zeros_like(parameter) for parameter in model.parameters()]
        self.counted = self.skipped = 0

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss of a batch, whose gradients are added unless one of them is infinite or NaN."""
        loss = nn.functional.mse_loss(self.model(x), y)
        gradients = torch.autograd.grad(loss, list(self.model.parameters()))
        if all(gradient.isfinite().all() for gradient in gradients):
            for total, gradient in zip(self.totals, gradients, strict=True):
                total += gradient
            self.counted += 1
        else:
            self.skipped += 1
        return loss.detach()

    def release(self) -> None:
        """Hand the mean gradient to the parameters, and begin anew."""
        for parameter, total in zip(self.model.parameters(), self.totals, strict=True):
            parameter.grad = total / max(self.counted, 1)
            total.zero_()
        self.counted = 0


def batch(number: int) -> tuple[Tensor, Tensor]:
    """A batch; every seventh has a value that overflows."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(number))
    y = x.sin().sum(dim=1, keepdim=True)
    if number % 7 == 6:
        x[0, 0] = 1e30
    return x, y


def train(accumulator: Accumulator, steps: int) -> list[float]:
    """The losses, batch by batch."""
    optimizer = torch.optim.SGD(accumulator.model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for number in range(steps * EVERY):
        losses.append(accumulator(*batch(number)).item())
        if (number + 1) % EVERY == 0:
            accumulator.release()
            optimizer.step()
    return losses


def main(steps: int = 40) -> None:
    torch.manual_seed(0)
    eager = Accumulator(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
    static = sg.to_static(copy.deepcopy(eager), backend="eager")
    losses, expected = train(static, steps), train(eager, steps)
    torch.testing.assert_close(losses, expected, rtol=0, atol=0, equal_nan=True)
    assert (static.counted, static.skipped) == (eager.counted, eager.skipped)
    for mine, theirs in zip(static.model.parameters(), eager.model.parameters(), strict=True):
        assert mine.equal(theirs)
    print(f"{len(losses)} batches, {static.skipped} skipped; loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    print("losses, counts and weights are eager's, bit by bit;", static.forward.cache_info().programs, "program")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Accumulate gradients, leaving out those that overflow.")
    parser.add_argument("--steps", type=int, default=40)
    main(**vars(parser.parse_args()))
