"""Files at work: what a call of a loop costs from ``.pt2``, from AOTInductor's package and in onnxruntime.

``python -m bench.deploy [--rounds N] [--loop NAME]... [--quick] [--json FILE]``. Each loop is saved in every format in
a folder of its own, every file has to give eager PyTorch's results, and then all take turns: eager PyTorch, the
``.pt2`` as torch alone runs it, by ``sg.load`` and by that with Inductor, the package by ``sg.load(native=True)``, and
onnxruntime. One thread each; no gradients.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.deploy``

import stillgraph as sg
from bench._judging import brief, leaves, quiet, same
from bench._timing import machine, median, median_ratio, per_call, write_json
from bench.models import MODELS
from tests.cases.case import Case

Call = Callable[[], object]
LOOPS = ("scalar loop", "greedy, static cache", "ODE, adaptive step", "k-means", "NMS", "RNN-T, greedy")
Formats = tuple[str, ...]
FORMATS = {
    ".pt2, torch alone": ".pt2",
    ".pt2, sg.load": ".pt2",
    ".pt2, Inductor": ".pt2",
    "AOTInductor": ".aoti.pt2",
    "onnxruntime": ".onnx",
}


def calls(loop: Case, folder: Path, formats: Formats = tuple(FORMATS)) -> tuple[dict[str, Call], dict[str, str]]:
    """A call of eager PyTorch and of each file; and by format why there is no file.

    Raises:
        AssertionError: a file does not give eager's result.
    """
    args = loop.inputs[0]
    made: dict[str, Call] = {"eager": partial(loop.target(), *args)}
    refused: dict[str, str] = {}
    expected = made["eager"]()
    for name in formats:
        path = folder / f"loop{FORMATS[name]}"
        try:
            if not path.exists():
                sg.save(loop.target(), path, args=args)
        except sg.CaptureError as error:
            refused[name] = brief(error)
            continue
        made[name] = _call(name, path, args)
        found = made[name]()
        found = [torch.as_tensor(value) for value in found] if name == "onnxruntime" else found
        assert same(leaves(expected), found), f"{loop.name}: {name} gives another result"
    return made, refused


def _call(name: str, path: Path, args: tuple[Any, ...]) -> Callable[[], Any]:
    if name == ".pt2, torch alone":
        return partial(torch.export.load(path).module(), *args)
    if name == ".pt2, Inductor":
        return partial(sg.load(path, backend="inductor"), *args)
    if name != "onnxruntime":
        return partial(sg.load(path, native=name == "AOTInductor"), *args)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {taken.name: tensor.numpy() for taken, tensor in zip(session.get_inputs(), args, strict=True)}
    return partial(session.run, None, given)


def measure(loop: Case, rounds: int, budget: float, formats: Formats = tuple(FORMATS)) -> dict[str, Any]:
    """Milliseconds of a call by each contender, and the ratios to eager's round by round."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        with quiet():
            made, refused = calls(loop, Path(folder), formats)
        seconds = per_call(made, rounds=rounds, budget=budget)
    return {
        "loop": loop.name,
        "milliseconds": {name: median(values) * 1e3 for name, values in seconds.items()},
        "of eager": {name: median_ratio(values, seconds["eager"]) for name, values in seconds.items()},
        "refused": refused,
    }


@click.command()
@click.option("--rounds", default=21, show_default=True, help="How often each contender is timed.")
@click.option("--loop", "wanted", multiple=True, type=click.Choice(LOOPS), help="Only this one; may be repeated.")
@click.option("--quick", is_flag=True, help="Three short rounds without AOTInductor, to try the script.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to a file as well.")
def main(rounds: int, wanted: tuple[str, ...], quick: bool, json_path: Path | None) -> None:
    """Time the loops from their files."""
    torch.set_num_threads(1)
    formats = tuple(name for name in FORMATS if name != "AOTInductor") if quick else tuple(FORMATS)
    console = Console()
    if not console.is_terminal:
        console.width = 150
    console.print(machine())
    loops = [case for name in LOOPS for case in MODELS if case.name == name and (not wanted or name in wanted)]
    rows = []
    for loop in loops:
        with console.status(loop.name):
            rows.append(measure(loop, 3 if quick else rounds, 1e-3 if quick else 5e-2, formats))
    table = Table("loop", "eager", *formats, title="Milliseconds of a call (and of eager's, round by round)")
    for row in rows:
        table.add_row(row["loop"], f"{row['milliseconds']['eager']:.2f}", *(_cell(row, name) for name in formats))
    console.print(table)
    for row in rows:
        for name, reason in row["refused"].items():
            console.print(f"{row['loop']}, {name}: {reason}", markup=False, soft_wrap=True)
    write_json(json_path, rows)


def _cell(row: dict[str, Any], name: str) -> str:
    if name in row["refused"]:
        return "refused"
    return f"{row['milliseconds'][name]:.2f} ({row['of eager'][name]:.2f})"


if __name__ == "__main__":
    main()
