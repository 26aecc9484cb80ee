"""What the optimiser gains: files and compiled programs with each of its passes and without, in one process.

    python -m bench.optimised --rounds 21
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

import stillgraph as sg
from bench.models import MODELS

MODES = ("none", "all")


def table_in_a_loop(x: Tensor, w: Tensor) -> Tensor:
    """Each iteration computes a table of positions that does not change, as decoders do."""
    while x.norm() < 50:
        positions = torch.arange(64.0)[:, None] / torch.pow(10000.0, torch.arange(32.0) / 32)
        x = torch.tanh(x @ w + torch.sin(positions)) + x * 1.1
    return x


def tests_in_a_loop(x: Tensor, w: Tensor) -> Tensor:
    """A loop of small branches on conditions that others have settled."""
    step = torch.tensor(0.5)
    for _ in range(40):
        error = (x * w).sum()
        if error > 0:
            step = step * 0.9 if error > 0 else step * 1.1
            x = x - step * w
        else:
            step = step * 1.1
            x = x + step * w
    return x


OWN = {
    "a table in a loop": (table_in_a_loop, (torch.ones(64, 32) / 9, torch.eye(32) / 2)),
    "settled conditions": (tests_in_a_loop, (torch.ones(16), torch.linspace(-1, 1, 16))),
}


def contenders(function: Any, args: tuple[Any, ...], folder: Path) -> dict[tuple[str, str], Callable[..., Any]]:
    """What runs, by the format and by whether it is optimised."""
    made: dict[tuple[str, str], Callable[..., Any]] = {}
    for mode in MODES:
        os.environ["STILLGRAPH_OPTIMISE"] = mode
        for suffix in (".pt2", ".onnx"):
            path = folder / f"{mode}{suffix}"
            sg.save(function, path, args=args)
            made[suffix, mode] = sg.load(path)
        made["Inductor", mode] = sg.to_static(function, backend="inductor")
        made["Inductor", mode](*args)
    return made


@click.command(help=__doc__)
@click.option("--rounds", default=21, show_default=True)
@click.option("--models", is_flag=True, help="The 16 models of bench/models.py, too.")
def main(rounds: int, models: bool) -> None:
    torch.set_num_threads(1)
    targets = dict(OWN)
    if models:
        targets |= {case.name: (case.target(), case.inputs[0]) for case in MODELS}
    print("| program | | ms without | ms with | of without |\n|---|---|---|---|---|")
    for name, (function, args) in targets.items():
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            made = contenders(function, args, Path(folder))
            times: dict[tuple[str, str], list[float]] = {each: [] for each in made}
            for _ in range(rounds):
                for each, run in made.items():
                    begin = time.perf_counter()
                    run(*args)
                    times[each].append(time.perf_counter() - begin)
        for kind in dict.fromkeys(kind for kind, _ in made):
            before, after = (times[kind, mode] for mode in MODES)
            ratio = statistics.median(a / b for a, b in zip(after, before))
            ms = [statistics.median(each) * 1e3 for each in (before, after)]
            print(f"| {name} | {kind} | {ms[0]:.2f} | {ms[1]:.2f} | **{ratio:.2f}** |")


if __name__ == "__main__":
    main()
