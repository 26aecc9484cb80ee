"""What is written before a call that finds it, where the capture goes over the same lines more than once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.gradients.scenarios import V, Wrap, as_in_eager, refused


class Trainer:
    """A parameter, its optimizer, and how often its hook has run."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.optimizer = torch.optim.SGD([self.weight], lr=1.0)
        self.group = self.optimizer.param_groups[0]
        self.n, self.seen = 0, []
        self.weight.register_hook(self.note)

    def note(self, g: Tensor) -> None:
        self.seen.append(self.n)

    def step(self, x: Tensor) -> None:
        self.optimizer.zero_grad()
        (self.weight * x).sum().backward()
        self.optimizer.step()


def over_a_list(trainer: Trainer, x: Tensor) -> Any:
    trainer.group["lr"] = 0.01
    for limit in [1.0, 2.0, 100.0]:
        trainer.step(x)
        if x.sum() < limit:
            return trainer.weight * limit
    return trainer.weight * 1


def with_a_break(trainer: Trainer, x: Tensor) -> Any:
    trainer.group["lr"] = 0.01
    for limit in [1.0, 2.0, 100.0]:
        trainer.step(x)
        if x.sum() < limit:
            break
    return trainer.weight * limit


def while_it_lasts(trainer: Trainer, x: Tensor) -> Any:
    trainer.group["lr"] = 0.01
    n = 0
    while x.sum() > n * 4:
        trainer.step(x)
        n += 1
    return trainer.weight * n


def as_often_as_the_run_says(trainer: Trainer, x: Tensor) -> Any:
    trainer.group["lr"] = 0.01
    for _ in range(int(x[0])):
        trainer.step(x)
    return trainer.weight * 1


def protected(trainer: Trainer, x: Tensor) -> Any:
    trainer.group["lr"] = 0.01
    try:
        trainer.step(x)
        if x.sum() > 5:
            raise ValueError
    except ValueError:
        trainer.group["lr"] = 0.5
    trainer.step(x)
    return trainer.weight * 1


def written_back(trainer: Trainer, x: Tensor) -> Any:
    trainer.n = 2
    trainer.step(x)
    if x.sum() > 5:
        trainer.n = 5
        trainer.step(x)
        trainer.n = 2
    return x * trainer.n


@pytest.mark.parametrize(
    "body", [over_a_list, with_a_break, while_it_lasts, as_often_as_the_run_says, protected, written_back]
)
def test_what_is_written_before(body: Any) -> None:
    @as_in_eager
    def scenario(wrap: Wrap) -> Any:
        trainer = Trainer()
        f = wrap(body)
        results = []
        for x in (V(1, 2, 3, g=False), V(0.25, 0.25, 0.25, g=False), V(3, 4, 50, g=False)):
            result = f(trainer, x), trainer.weight.detach().clone(), trainer.n, list(trainer.seen)
            results += [*result, trainer.group["lr"]]
        return results

    scenario()


def test_a_list_that_a_hook_of_the_loop_appends_to_is_not_read_at_its_head() -> None:
    trainer = Trainer()

    def f(x: Tensor) -> Any:
        total = x * 0
        while total.sum() < 10:
            total = total + len(trainer.seen) + 1
            trainer.step(x)
        return total

    assert "trainer.seen is used after backward()" in refused(f, V(1, 2, 3, g=False))
