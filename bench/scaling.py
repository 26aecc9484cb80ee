"""How the time of a capture grows with the function: seconds of the processor for n, 2n and 4n of a construct.

``python -m bench.scaling [--rounds N] [--only NAME] [--json FILE]``. The exponent is that of the growth from n to 4n: 1
is linear, 2 quadratic. "capture" is `export`; "first call" also makes the driver and the guards, and runs them.
"""

from __future__ import annotations

import gc
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.scaling``

import stillgraph as sg
from bench._timing import machine, write_json

Lines = Iterator[str]


# ---- functions of a size
def operations(count: int) -> Lines:
    """Operations one after the other."""
    for number in range(count):
        yield f"    x = x {'+-*'[number % 3]} 1.5"
    yield "    return x"


def branches(count: int) -> Lines:
    """Branches one after the other, each on a condition of its own."""
    for number in range(count):
        yield f"    if x.sum() > {number}:"
        yield "        x = x + 1"
        yield "    else:"
        yield "        x = x - 1"
    yield "    return x"


def nested(count: int) -> Lines:
    """Branches inside each other."""
    for number in range(count):
        yield f"{'    ' * (number + 1)}if x.sum() > {number}:"
        yield f"{'    ' * (number + 2)}x = x + 1"
    yield "    return x"


def returns(count: int) -> Lines:
    """Early returns."""
    for number in range(count):
        yield f"    if x.sum() > {100 - number}:"
        yield f"        return x * {number}"
        yield "    x = x + 1"
    yield "    return x"


def loops(count: int) -> Lines:
    """Loops one after the other, each of as many turns as its tensor says."""
    for number in range(count):
        yield f"    while x.sum() < {number}:"
        yield "        x = x + 1"
    yield "    return x"


def plain(count: int) -> Lines:
    """Lines of Python on numbers, which the capture evaluates, with an operation in every tenth."""
    yield "    total = 0"
    for number in range(count):
        yield "    x = x + total" if number % 10 == 9 else f"    total = total * 3 % 7 + {number}"
    yield "    return x"


@dataclass(frozen=True)
class Shape:
    """A kind of function, and how large the largest is."""

    name: str
    lines: Callable[[int], Lines]
    most: int


SHAPES = (
    Shape("operations", operations, 1600),
    Shape("branches in a row", branches, 160),
    Shape("branches inside each other", nested, 40),
    Shape("early returns", returns, 80),
    Shape("loops in a row", loops, 40),
    Shape("lines of Python", plain, 2000),
)


def function(shape: Shape, count: int, folder: Path) -> Any:
    """A function of this shape and size, read from a file of its own."""
    path = folder / f"{shape.name.replace(' ', '_')}_{count}.py"
    path.write_text("def function(x):\n" + "\n".join(shape.lines(count)) + "\n")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function


# ---- times
def capture(target: Any) -> float:
    return _seconds(lambda: sg.export(target, (torch.ones(3),)))


def first_call(target: Any) -> float:
    static = sg.to_static(target, backend="eager")
    return _seconds(lambda: static(torch.ones(3)))


TIMED: dict[str, Callable[[Any], float]] = {"capture": capture, "first call": first_call}


def _seconds(timed: Callable[[], object]) -> float:
    gc.collect()
    begin = time.process_time()
    timed()
    return time.process_time() - begin


def exponent(seconds: list[float]) -> float:
    """That of the growth from the first, for n, to the last, for 4n."""
    return math.log(seconds[-1] / seconds[0]) / math.log(4)


def measure(shapes: list[Shape], rounds: int) -> dict[str, dict[str, list[float]]]:
    """The least seconds for n, 2n and 4n, by shape and by what is timed; all shapes take turns."""
    least: dict[str, dict[str, list[float]]] = defaultdict(lambda: {what: [math.inf] * 3 for what in TIMED})
    with tempfile.TemporaryDirectory() as folder:
        first_call(function(SHAPES[1], 2, Path(folder)))  # what torch loads once
        for _ in range(rounds):
            for shape in shapes:
                for index in range(3):
                    for what, timed in TIMED.items():
                        target = function(shape, shape.most >> (2 - index), Path(folder))  # rewritten anew
                        found = least[shape.name][what]
                        found[index] = min(found[index], timed(target))
    return least


@click.command()
@click.option("--rounds", default=3, show_default=True)
@click.option("--only", type=click.Choice([shape.name for shape in SHAPES]))
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write every figure.")
def main(rounds: int, only: str | None, path: Path | None) -> None:
    """Time captures of functions of n, 2n and 4n constructs."""
    torch.set_num_threads(1)
    shapes = [shape for shape in SHAPES if only in (None, shape.name)]
    seconds = measure(shapes, rounds)
    table = Table(title="seconds of the processor")
    for heading in ("", "4n", "", "n", "2n", "4n", "exponent", "ms for each of 4n"):
        table.add_column(heading, justify="left" if not heading else "right")
    for shape in shapes:
        for what, found in seconds[shape.name].items():
            figures = [f"{each:.2f}" for each in found]
            each = f"{found[-1] / shape.most * 1e3:.2f}"
            table.add_row(shape.name, str(shape.most), what, *figures, f"{exponent(found):.2f}", each)
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()))
    write_json(path, seconds)


if __name__ == "__main__":
    main()
