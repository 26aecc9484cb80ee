"""Random numbers: the same ones as in eager, whatever is drawn, seeded, read, set or forked where."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import stillgraph as sg
from tests.unit.contexts.modes import DOWN, MATRICES, UP, VECTORS, agree_in
from tests.unit.trace.agreement import refusal


def dropped(x: Tensor) -> Any:
    if x.sum() > 0:
        y = F.dropout(x, 0.5)
    else:
        y = F.dropout(x * 2, 0.3)
    return y, torch.rand(2)


def dropped_in_a_loop(x: Tensor) -> Any:
    trips = 0
    while x.abs().sum() > 1 and trips < 5:
        x = F.dropout(x, 0.3) * 0.5
        trips += 1
    return x, torch.randn(2)


def decided_by_chance(x: Tensor) -> Tensor:
    if torch.rand(()) > 0.5:
        return x * 2
    return x * torch.rand(3)


def seeded(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    if x.sum() > 0:
        torch.manual_seed(4)
        return torch.rand(3) * x
    return torch.randn(3)


def read_and_set(x: Tensor) -> Any:
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    if x.sum() > 0:
        b = torch.rand(3)
    else:
        b = torch.rand(3) + 1
        torch.set_rng_state(state)
    return a, b, torch.rand(1)


def forked(x: Tensor) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        if x.sum() > 0:
            a = torch.rand(3)
        else:
            a = torch.randn(3)
    return a + x, torch.rand(3)


def forked_in_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        with torch.random.fork_rng():
            a = torch.rand(3)
    else:
        a = torch.randn(3)
    return a + x, torch.rand(3)


def forked_in_a_loop(x: Tensor) -> Any:
    while x.sum() > 1:
        with torch.random.fork_rng():
            torch.manual_seed(7)
            x = x * torch.rand(3)
    return x, torch.rand(1)


def not_forked(x: Tensor) -> Any:
    with torch.random.fork_rng(enabled=x.shape[0] > 5):
        a = torch.rand(2)
    return a, torch.rand(1)


def forked_around_an_error(x: Tensor) -> Any:
    try:
        with torch.random.fork_rng():
            torch.rand(3)
            raise ValueError("known at once")
    except ValueError:
        x = x + 1
    return x, torch.rand(1)


def own_generator(x: Tensor) -> Any:
    generator = torch.Generator().manual_seed(int(x[0].item()) + 5)
    a = torch.rand(3, generator=generator)
    if x.sum() > 0:
        b = torch.randn(3, generator=generator)
    else:
        b = a
    state = generator.get_state()
    c = torch.rand(2, generator=generator)
    generator.set_state(state)
    trips = 0
    while trips < x.sum():
        c = c + torch.rand(2, generator=generator)
        trips += 1
    return a, b, c, torch.rand(2, generator=generator), generator.initial_seed()


def generator_of_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        generator = torch.Generator()
        generator.manual_seed(3)
        return torch.rand(2, generator=generator)
    return torch.rand(2)


def drawn_in_many_ways(x: Tensor) -> Any:
    generator = torch.Generator(device=x.device).manual_seed(x.shape[0])
    order = torch.randperm(5, generator=generator)
    return order, torch.bernoulli(torch.full((3,), 0.5), generator=generator), torch.rand_like(x)


FUNCTIONS = [
    dropped,
    dropped_in_a_loop,
    decided_by_chance,
    seeded,
    read_and_set,
    forked,
    forked_in_an_arm,
    forked_in_a_loop,
    not_forked,
    forked_around_an_error,
    own_generator,
    generator_of_an_arm,
    drawn_in_many_ways,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_inside_a_function(function: Any) -> None:
    agree_in(lambda: function, *VECTORS, UP)  # which compares the next random number too


SEEDED = """
import torch
{first}
{second}
def seeded(x):
    torch.manual_seed(3)
    return x * torch.rand(3) if x.sum() > 0 else x
x = torch.ones(3)
expected, static = seeded(x), stillgraph.to_static(seeded, backend="eager")
assert static(x).equal(expected) and static(x).equal(expected)
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1], ids=["dynamo-first", "dynamo-later"])
def test_a_seed_that_dynamo_wraps(order: int, tmp_path: Path) -> None:
    first, second = ["import torch._dynamo", "import stillgraph"][::order]
    script = tmp_path / "seeded.py"
    script.write_text(SEEDED.format(first=first, second=second))
    subprocess.run([sys.executable, str(script)], check=True)


def test_a_seed_that_dynamo_has_wrapped_by_now() -> None:
    importlib.import_module("torch._dynamo")
    assert hasattr(torch.manual_seed, "__wrapped__")
    agree_in(lambda: seeded, *VECTORS, UP)


def test_a_generator_from_outside() -> None:
    def make() -> Any:
        generator = torch.Generator().manual_seed(5)

        def function(x: Tensor) -> Any:
            a = torch.rand(3, generator=generator)
            if x.sum() > 0:
                generator.manual_seed(9)
            return a, torch.rand(2, generator=generator)

        return function

    agree_in(make, DOWN, UP, DOWN, DOWN)


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout, self.layer = nn.Dropout(0.4), nn.Linear(3, 3)
        self.generator = torch.Generator().manual_seed(1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.dropout(self.layer(x))
        if h.sum() > 0:
            return self.dropout(h)
        return h + torch.rand(3, generator=self.generator)


def test_a_module() -> None:
    agree_in(Noisy, *MATRICES, *MATRICES)


def test_a_generator_is_returned_anew() -> None:
    static = sg.to_static(lambda x: torch.Generator().manual_seed(5), backend="eager")
    first, second = static(UP), static(UP)
    assert first is not second
    assert (first.initial_seed(), second.initial_seed()) == (5, 5)


def test_refused() -> None:
    def cloned(x: Tensor) -> Any:
        return torch.Generator().clone_state()

    def raised_in_a_fork(x: Tensor) -> Tensor:
        with torch.random.fork_rng():
            if x.sum() > 0:
                raise ValueError("only known in the run")
        return x

    assert "the method clone_state of a random generator" in str(refusal(cloned, UP))
    assert refusal(raised_in_a_fork, UP).reason.code == "SG208"


@pytest.mark.parametrize("function", [own_generator, read_and_set])
def test_not_exported(function: Any, tmp_path: Any) -> None:
    with pytest.raises(sg.CaptureError, match="random generator"):
        sg.save(function, tmp_path / "program.pt2", args=(UP,))


@pytest.mark.slow
def test_with_inductor() -> None:
    def function(x: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(5)
        while x.sum() > 1:
            x = x * torch.rand(3, generator=generator) + torch.zeros(3) * 2
        return x

    static = sg.to_static(function, backend="inductor")
    for grad in (True, False, False):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(static(UP), function(UP))
