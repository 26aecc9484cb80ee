"""Staged loops: what it costs to capture one, and how fast it runs.

``python -m bench.loops [--rounds N] [--json FILE]``. The first table captures ``for i in range(n)`` for growing ``n``:
above the unroll limit the loop is staged, so neither time nor size grow with ``n``. The second runs loops of 200
iterations without gradients: stillgraph under Inductor (the whole loop is one compiled graph), for these sizes and for
all, against eager PyTorch, ``torch.jit.script`` and ``torch.compile``, all interleaved.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.loops``

import stillgraph as sg
from bench._timing import machine, median, per_call, write_json

COUNTS = (10, 100, 1_000, 10_000)


def repeated(x: Tensor, w: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.tanh(x @ w) + i * 1e-4
    return x


def fixed(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """A number of iterations that is known."""
    for _ in range(200):
        y = torch.tanh(x @ w + b)
        x = x + 0.1 * (y - x) * torch.sigmoid(y)
    return x


def settling(x: Tensor, w: Tensor, b: Tensor, limit: Tensor) -> Tensor:
    """Until it settles, at most 200 times; here it never does."""
    steps = 0
    change = torch.ones(())
    while steps < 200 and bool(change > limit):
        y = torch.tanh(x @ w + b)
        new = x + 0.1 * (y - x) * torch.sigmoid(y)
        change = (new - x).abs().max()
        x = new
        steps += 1
    return x


def captures() -> list[dict[str, Any]]:
    """Seconds and nodes of a capture, by the number of iterations; the best of three."""
    x, w = torch.randn(8, 32), torch.randn(32, 32) / 8
    rows = []
    for n in COUNTS:
        seconds = []
        for _ in range(3):
            static = sg.to_static(repeated, backend="eager")
            start = time.perf_counter()
            program = static.get_program(x, w, n)
            seconds.append(time.perf_counter() - start)
        nodes = sum(len(region.graph.nodes) for region in program.regions)
        rows.append({"iterations": n, "seconds": min(seconds), "nodes": nodes})
    return rows


def runs(rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of a call by each contender."""
    torch.manual_seed(0)
    x, w, b = torch.randn(8, 32), torch.randn(32, 32) / 12, torch.randn(32) / 10
    rows = []
    for function, args in ((fixed, (x, w, b)), (settling, (x, w, b, torch.tensor(-1.0)))):
        contenders: dict[str, Callable[..., Any]] = {
            "eager": function,
            "TorchScript": torch.jit.script(function),
            "torch.compile": torch.compile(function),
            "stillgraph": sg.to_static(function),
            "with open sizes": sg.to_static(function, dynamic=True),
        }
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = function(*args)
            for contender in contenders.values():
                for _ in range(4):
                    torch.testing.assert_close(contender(*args), expected, atol=1e-4, rtol=1e-4)
            calls = {name: partial(call, *args) for name, call in contenders.items()}
            seconds = per_call(calls, rounds=rounds)
        rows.append({"loop": function.__name__, **{name: median(values) * 1e3 for name, values in seconds.items()}})
    return rows


@click.command()
@click.option("--rounds", default=21, show_default=True, help="How often each contender is timed.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to a file as well.")
def main(rounds: int, json_path: Path | None) -> None:
    """Time the capture and the run of loops."""
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 4
    console = Console()
    console.print(machine())
    captured, timed = captures(), runs(rounds)
    table = Table("iterations", "capture, ms", "nodes", title="Capturing for i in range(n), unroll limit 64")
    for row in captured:
        table.add_row(str(row["iterations"]), f"{row['seconds'] * 1e3:.0f}", str(row["nodes"]))
    console.print(table)
    names = list(timed[0])[1:]
    table = Table("loop", *names, "of eager", "of TorchScript", title="Milliseconds of 200 iterations, no gradients")
    for row in timed:
        ratios = (f"{row['stillgraph'] / row[name]:.2f}" for name in ("eager", "TorchScript"))
        table.add_row(row["loop"], *(f"{row[name]:.2f}" for name in names), *ratios)
    console.print(table)
    if json_path is not None:
        write_json(json_path, {"captures": captured, "runs": timed})


if __name__ == "__main__":
    main()
