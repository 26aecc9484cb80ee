"""What a process pays before its first result: stillgraph and `torch.compile(backend="eager")`, a fresh process each.

``python -m bench.first [--rounds N] [--json FILE]``. Figures are seconds of the processor, which other work on the
machine hardly changes. Python's start and ``import torch`` are left out, but for the commands. In every round the
contenders take turns. "(torch loaded)": what both need of torch was imported before, so that what is left is their own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.first``

from bench._first_process import CONTENDERS
from bench._timing import machine, median, write_json

_PROCESS = Path(__file__).with_name("_first_process.py")
_LOADED = "(torch loaded)"
COMMANDS = ("--version", "--help", "errors SG201")

Seconds = dict[str, dict[str, list[float]]]


def contenders() -> dict[str, list[str]]:
    """By name, the arguments of a process."""
    plain = {name: [name] for name in CONTENDERS}
    return plain | {f"{name} {_LOADED}": [name, "loaded"] for name in CONTENDERS}


def steps_of(arguments: list[str]) -> dict[str, float]:
    """Seconds of the processor for the steps of a process."""
    done = subprocess.run([sys.executable, _PROCESS, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def command(text: str) -> float:
    """Seconds of the processor for a command of ours, Python's start and end included."""
    before = _of_children()
    subprocess.run([sys.executable, "-m", "stillgraph", *text.split()], capture_output=True, check=True)
    return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(rounds: int) -> Seconds:
    """Seconds by contender and step, round by round; the first round, in which files are read anew, is left out."""
    seconds: Seconds = defaultdict(lambda: defaultdict(list))
    for turn in range(rounds + 1):
        for name, arguments in contenders().items():
            for step, taken in steps_of(arguments).items():
                seconds[name][step].append(taken)
        for text in COMMANDS:
            seconds[f"stillgraph {text}"]["command"].append(command(text))
        if not turn:
            seconds.clear()
    return seconds


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write every sample.")
def main(rounds: int, path: Path | None) -> None:
    """Time the steps of fresh processes."""
    seconds = measure(rounds)
    steps = list(dict.fromkeys(step for found in seconds.values() for step in found))
    table = Table(title="seconds of the processor, median")
    table.add_column("")
    for step in steps:
        table.add_column(step, justify="right")
    for name, found in seconds.items():
        table.add_row(name, *(f"{median(found[step]):.2f}" if step in found else "" for step in steps))
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()))
    write_json(path, seconds)


if __name__ == "__main__":
    main()
