"""A thousand steps leave as many objects as there were before (the frame leak of the pioneers, see seed 004)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.sampling import few
from tests.unit.leaks.objects import census, frames, growth, resident


class Net(nn.Module):
    """Branches, loops, a counter, statistics, a list and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("average", torch.zeros(4))
        self.steps = 0
        self.last: list[Tensor] = []

    def forward(self, x: Tensor) -> Any:
        self.steps += 1
        h = self.norm(self.first(x))
        if h.sum() > 0:
            h = self.second(h)
        else:
            h = torch.relu(h)
        self.average = self.average * 0.9 + h.mean(0).detach()
        self.last = [h.detach().sum()]
        parts = []
        while h.norm() > 1 and len(parts) < 5:
            h = h * 0.5
            parts.append(h.sum())
        return h, len(parts)


def trained(model: nn.Module) -> Callable[[int], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(number: int) -> None:
        optimizer.zero_grad()
        output, _ = model(torch.randn(5, 4))
        output.sum().backward()
        optimizer.step()

    return step


def test_a_thousand_steps() -> None:
    model = sg.to_static(Net(), backend="eager")
    step = trained(model)
    for number in range(50):
        step(number)
    before, kept, memory = census(), frames(), resident()
    for number in range(1000):
        step(number)
    assert model.forward.cache_info()[:3] == (1049, 1, 1)
    assert frames() <= kept
    assert {name: count for name, count in (census() - before).items() if count > 2} == {}
    assert resident() - memory < 4096


@pytest.mark.slow
def test_a_thousand_steps_that_raise() -> None:
    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            raise ValueError(f"too large: {x.sum().item()}")
        return x

    static = sg.to_static(function, backend="eager")

    def step(number: int) -> None:
        with pytest.raises(ValueError, match="too large"):
            static(torch.ones(100))

    assert growth(step, 500) == {}


@pytest.mark.slow
def test_steps_with_inductor() -> None:
    model = sg.to_static(Net(), backend="inductor")
    step = trained(model)
    for number in range(30):
        step(number)
    census()  # the first collection behind a compilation makes objects of its own
    before, memory = census(), resident()
    for number in range(1000):
        step(number)
    assert {name: count for name, count in (census() - before).items() if count > 20} == {}
    assert resident() - memory < 8192


# ---- ever new static functions
def of_closures(number: int) -> None:
    kept = torch.randn(1000)

    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * kept.sum()
        return x

    sg.to_static(function, backend="eager")(torch.ones(3))


def of_modules(number: int) -> None:
    sg.to_static(Net(), backend="eager")(torch.randn(5, 4))


def of_local_classes(number: int) -> None:
    kept = torch.randn(1000)

    class Local(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * kept.sum() if x.sum() > 0 else x

    sg.to_static(Local(), backend="eager")(torch.ones(3))


def of_ever_new_numbers(number: int) -> None:
    STATIC(torch.ones(3), f"{number:04}")  # of one length, so that every program multiplies by the same number


STATIC = sg.to_static(lambda x, text: x * len(text) if x.sum() > 0 else x, backend="eager", cache_size=2)


def of_refusals(number: int) -> None:
    kept, model = torch.randn(1000), nn.Linear(4, 4)

    def function(x: Tensor) -> Tensor:
        y = model(x) * kept.sum() if x.sum() > 0 else x
        torch.set_grad_enabled(False)
        return y

    with pytest.raises(sg.CaptureError):
        sg.to_static(function, backend="eager")(torch.randn(5, 4))


def of_errors(number: int) -> None:
    kept = torch.randn(1000)

    def function(x: Tensor) -> Tensor:
        x = x * kept.sum()
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        sg.to_static(function, backend="eager")(torch.randn(5, 4))


@pytest.mark.filterwarnings("ignore:.*already has 2 programs")
@pytest.mark.parametrize(
    "step",
    few([of_closures, of_local_classes, of_ever_new_numbers, of_refusals, of_errors, of_modules], slow=[of_modules]),
)
def test_many_captures(step: Callable[[int], None]) -> None:
    assert growth(step, 10) == {}


def print_growth_of_memory() -> None:
    """Print by how many KiB the process has grown in eighty captures."""
    for number in range(120):  # the allocator's own margin is as large as it gets after a hundred
        of_modules(number)
    memory = resident()
    for number in range(80):
        of_modules(number)
    print(resident() - memory)


@pytest.mark.slow
def test_many_captures_in_flat_memory() -> None:
    # in a process of its own: in one that has run thousands of tests the allocator gives back little
    script = f"from {__name__} import print_growth_of_memory as run; run()"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 8 * 1024
