"""Many lanes at once: ``sg.vmap`` of functions with control flow, against a loop over the lanes.

Run as ``python -m bench.transforms``. An ODE solver with a step of its own size for each lane, a root finder, a decoder
that ends where it likes, and a sampler that grows trees of steps. Each is plain PyTorch for one lane. The loops over
the lanes run it as it stands, and as a static function. ``torch.vmap`` of it is tried, too. Results are compared before
anything is timed. Seconds are those of the processor: all of this is one thread.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[1]))
import stillgraph as sg
from bench._timing import machine, median, write_json


# ---- what is run for each lane
def field(y: Tensor, stiffness: Tensor) -> Tensor:
    """Van der Pol's oscillator."""
    return torch.stack([y[1], stiffness * (1 - y[0] * y[0]) * y[1] - y[0]])


def solve(y: Tensor, stiffness: Tensor, end: Tensor, tolerance: float = 1e-3) -> tuple[Tensor, int]:
    """Integrate to ``end`` by the method of Bogacki and Shampine, with steps as long as their error allows."""
    t, h, steps = torch.zeros(()), torch.full((), 0.05), 0
    while t < end:
        h = torch.minimum(h, end - t)
        first = field(y, stiffness)
        second = field(y + h / 2 * first, stiffness)
        third = field(y + 3 * h / 4 * second, stiffness)
        new = y + h / 9 * (2 * first + 3 * second + 4 * third)
        fourth = field(new, stiffness)
        other = y + h / 24 * (7 * first + 6 * second + 8 * third + 3 * fourth)
        error = (new - other).abs().max() / tolerance
        if error <= 1:
            t, y = t + h, new
        h = h * (0.9 * error.clamp(min=1e-6) ** (-1 / 3)).clamp(0.3, 3.0)
        steps += 1
    return y, steps


def normal_below(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / 2**0.5))


def price(volatility: Tensor, strike: Tensor, years: Tensor) -> Tensor:
    """What Black and Scholes say that a call option is worth."""
    spread = volatility * years.sqrt()
    high = (-strike.log() + 0.5 * volatility * volatility * years) / spread
    return normal_below(high) - strike * normal_below(high - spread)


def implied(worth: Tensor, strike: Tensor, years: Tensor) -> tuple[Tensor, int]:
    """The volatility that gives a price: Newton's method, halving the interval where that leaves it."""
    low, high = torch.full_like(worth, 1e-4), torch.full_like(worth, 8.0)
    x, steps = (low + high) / 2, 0
    while high - low > 1e-9:
        off = price(x, strike, years) - worth
        if off > 0:
            high = x
        else:
            low = x
        if off.abs() < 1e-12:
            break
        spread = x * years.sqrt()
        slope = torch.exp(-0.5 * ((-strike.log() + 0.5 * x * x * years) / spread) ** 2) * years.sqrt() / 2.5066282746
        step = x - off / slope
        if low < step and step < high:
            x = step
        else:
            x = (low + high) / 2
        steps += 1
    return x, steps


class Decoder(nn.Module):
    """Says one token after the other, until it says that it is done."""

    def __init__(self, tokens: int = 50, width: int = 64, limit: int = 120) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.mix = nn.Linear(2 * width, width)
        self.gate = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, tokens)
        self.limit = limit
        nn.init.normal_(self.embed.weight, std=2.0)
        nn.init.normal_(self.head.weight, std=0.3)

    def forward(self, state: Tensor) -> tuple[Tensor, int]:
        token = torch.zeros((), dtype=torch.int64)
        said, score = 0, torch.zeros(())
        while said < self.limit:
            both = torch.cat([self.embed(token), state])
            gate = torch.sigmoid(self.gate(both))
            state = gate * state + (1 - gate) * torch.tanh(self.mix(both)) * 1.5
            logits = self.head(state)
            token = logits.argmax()
            score = score + logits.max() - logits.logsumexp(0)
            said += 1
            if token < 2:
                break
        return score, said


def slope_of(x: Tensor) -> Tensor:
    """Of the logarithm of a density shaped like a banana."""
    a, b = x[0], x[1]
    bent = b - a * a
    return torch.stack([-a + 2 * a * bent, -bent])


def height(x: Tensor) -> Tensor:
    bent = x[1] - x[0] * x[0]
    return -0.5 * x[0] * x[0] - 0.5 * bent * bent


def leap(x: Tensor, p: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    p = p + h / 2 * slope_of(x)
    x = x + h * p
    return x, p + h / 2 * slope_of(x)


def sample(x: Tensor, kicks: Tensor, chances: Tensor, rounds: int = 8) -> tuple[Tensor, int]:
    """A sampler that doubles its path until it turns back, as NUTS does; random numbers come as arguments."""
    leaps = 0
    for index in range(rounds):
        p = kicks[index]
        energy = height(x) - 0.5 * (p * p).sum()
        left, right, left_p, right_p = x, x, p, p
        taken, weight = x, torch.ones(())
        size = 1
        while size <= 16:
            forward = chances[index, 0] > 0.5
            end, end_p = (right, right_p) if forward else (left, left_p)
            h = torch.where(forward, 0.15, -0.15)
            count = 0
            while count < size:
                end, end_p = leap(end, end_p, h)
                now = torch.exp((height(end) - 0.5 * (end_p * end_p).sum() - energy).clamp(max=20.0))
                weight = weight + now
                if chances[index, 1] * weight < now:
                    taken = end
                count += 1
                leaps += 1
                if now < 1e-3:
                    break
            if forward:
                right, right_p = end, end_p
            else:
                left, left_p = end, end_p
            between = right - left
            if (between * left_p).sum() < 0 or (between * right_p).sum() < 0:
                break
            size *= 2
        x = taken
    return x, leaps


@dataclass(frozen=True)
class Task:
    """What is run, and its arguments, of which each has the lanes in its first dimension."""

    name: str
    function: Callable[..., Any]
    args: tuple[Tensor, ...]


def tasks(lanes: int) -> list[Task]:
    """What is timed."""
    torch.manual_seed(0)
    strike, years = 0.7 + 0.6 * torch.rand(lanes), 0.2 + 2 * torch.rand(lanes)
    market = (price(0.1 + 0.5 * torch.rand(lanes), strike, years).double(), strike.double(), years.double())
    kicks, chances = torch.randn(lanes, 8, 2), torch.rand(lanes, 8, 2)
    return [
        Task("ODE", solve, (torch.randn(lanes, 2), 4 * torch.rand(lanes), 4 + 2 * torch.rand(lanes))),
        Task("root finder", implied, market),
        Task("decoder", Decoder().eval(), (torch.randn(lanes, 64),)),
        Task("sampler", sample, (torch.randn(lanes, 2), kicks, chances)),
    ]


# ---- timing
def over_lanes(function: Callable[..., Any], args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A loop over the lanes."""
    results = [function(*each) for each in zip(*args)]
    return tuple(torch.stack([torch.as_tensor(each) for each in column]) for column in zip(*results))


def made_static(function: Callable[..., Any]) -> Any:
    """A static function; loops over ranges are loops of its program."""
    to_static = sg.to_static(backend="eager", unroll_limit=4)
    return to_static(copy.deepcopy(function)) if isinstance(function, nn.Module) else to_static(function)


def difference(left: Any, right: Any) -> float:
    """The greatest difference of the results, relative to their size."""
    return max(float(((a - b).abs() / (1 + b.abs())).max()) for a, b in zip(left, right, strict=True))


def in_turn(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of the processor that each call takes, round by round; one round before them is discarded."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            if turn:
                seconds[name].append(time.process_time() - begin)
    return seconds


def says(call: Callable[[], object]) -> str:
    """What becomes of a call."""
    try:
        call()
    except Exception as error:  # of any kind: that is what is asked
        return f"{type(error).__name__}"
    return "runs"


def measured(task: Task, rounds: int) -> dict[str, str]:
    """The figures of a task, as they are shown."""
    function, args = task.function, task.args
    static = made_static(function)
    batched = sg.vmap(static)
    expected = over_lanes(function, args)
    off = difference(batched(*args)[:1], expected[:1])
    calls: dict[str, Callable[[], object]] = {
        "eager loop": lambda: over_lanes(function, args),
        "static loop": lambda: over_lanes(static, args),
        "sg.vmap": lambda: batched(*args),
    }
    seconds = in_turn(calls, rounds)
    ratio = median([a / b for a, b in zip(seconds["eager loop"], seconds["sg.vmap"])])
    steps = expected[1].float()
    return {
        **{name: f"{1000 * median(each):.1f}" for name, each in seconds.items()},
        "speed-up": f"{ratio:.1f} x",
        "steps": f"{steps.mean():.0f}, at most {steps.max():.0f}",
        "off by": f"{off:.1e}",
        "torch.vmap": says(lambda: torch.vmap(function)(*args)),
    }


@click.command()
@click.option("--lanes", default=64, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file, too.")
@click.option("--only", multiple=True, help="Of the tasks, only those whose names have this in them.")
def main(lanes: int, rounds: int, json_path: Path | None, only: tuple[str, ...]) -> None:
    """Time calls for many lanes."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    console = Console()
    table = Table(*("task", "eager loop, ms", "static loop", "sg.vmap", "speed-up", "steps", "off by", "torch.vmap"))
    figures: dict[str, Any] = {}
    with torch.no_grad():
        for task in tasks(lanes):
            if not only or any(each in task.name for each in only):
                figures[task.name] = measured(task, rounds)
                table.add_row(task.name, *figures[task.name].values())
    console.print(f"{lanes} lanes; milliseconds of the processor, one thread; {machine()}")
    console.print(table)
    if json_path is not None:
        write_json(json_path, figures)


if __name__ == "__main__":
    main()
