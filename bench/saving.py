"""What saving costs: processor seconds of a capture, of a ``.pt2`` and of an ``.onnx``, and of torch's own exporters.

``python -m bench.saving [--model NAME]... [--rounds N] [--quick] [--json FILE]``. The models are those of
`bench.models`, which have data-dependent branches and loops, a decoder of the usual kind with an LSTM, and a network
without any. A save contains its capture, its checks and the writing, so its ratio to the capture alone cannot be less
than 1. A small function is saved in every format before anything is timed: what is imported then is not counted.
Each figure is of a process of its own, forked from that state, so none finds in a cache what another has left there.
`torch.export` and `torch.onnx` refuse what depends on data. One thread; no gradients.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.saving``

import stillgraph as sg
from bench._judging import as_module, brief, quiet
from bench._timing import machine, median, write_json
from bench.models import MODELS
from tests.cases.case import Case


class LSTMDecoder(nn.Module):
    """Reads a sentence with an LSTM, and writes one word by word with attention to what it read."""

    def __init__(self, words: int = 40, width: int = 32, most: int = 20, end: int = 2) -> None:
        super().__init__()
        self.most, self.end = most, end
        self.embed = nn.Embedding(words, width)
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.cell = nn.LSTMCell(2 * width, width)
        self.attend = nn.Linear(width, width)
        self.project = nn.Linear(2 * width, words)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory, (hidden, cell) = self.encoder(self.embed(source))
        hidden, cell = hidden[-1], cell[-1]
        batch = source.shape[0]
        word = torch.ones(batch, dtype=torch.long)
        context = torch.zeros_like(hidden)
        tokens = torch.zeros(batch, self.most, dtype=torch.long)
        score = torch.zeros(batch)
        done = torch.zeros(batch, dtype=torch.bool)
        step = 0
        while step < self.most and not done.all():
            hidden, cell = self.cell(torch.cat([self.embed(word), context], dim=-1), (hidden, cell))
            weights = torch.softmax((memory @ self.attend(hidden).unsqueeze(-1)).squeeze(-1), dim=-1)
            context = (weights.unsqueeze(-1) * memory).sum(dim=1)
            logits = torch.log_softmax(self.project(torch.cat([hidden, context], dim=-1)), dim=-1)
            best, word = logits.max(dim=-1)
            if (word == self.end).any():
                word = torch.where(done, torch.full_like(word, self.end), word)
            score = score + torch.where(done, torch.zeros_like(best), best)
            tokens[:, step] = word
            done = done | (word == self.end)
            step += 1
        return tokens, score, torch.tensor(step)


class Plain(nn.Module):
    """Layers, one after another: what torch's own exporters take as well."""

    def __init__(self, width: int = 32, depth: int = 12) -> None:
        super().__init__()
        layers = [nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).softmax(dim=-1)


def _lines(x: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x * 2
    return x


SUBJECTS = (
    Case("three lines", lambda: _lines, [(torch.ones(3),)]),
    *MODELS,
    Case("LSTM, greedy", lambda: LSTMDecoder().eval(), [(torch.arange(14).reshape(2, 7) + 3,)]),
    Case("36 layers, no loop", lambda: Plain().eval(), [(torch.linspace(-1, 1, 128).reshape(4, 32),)]),
)
Timed = Callable[[Any, tuple[Any, ...], Path], object]


def _capture(target: Any, args: tuple[Any, ...], folder: Path) -> object:
    called = target.forward if isinstance(target, nn.Module) else target
    return sg.to_static(called, backend="eager").get_program(*args)


def _save(suffix: str) -> Timed:
    return lambda target, args, folder: sg.save(target, folder / f"model{suffix}", args=args)


def _torch_export(target: Any, args: tuple[Any, ...], folder: Path) -> object:
    torch.export.save(torch.export.export(as_module(target), args), folder / "theirs.pt2")
    return torch.export.load(folder / "theirs.pt2")


def _torch_onnx(target: Any, args: tuple[Any, ...], folder: Path) -> object:
    return torch.onnx.export(as_module(target), args, folder / "theirs.onnx", dynamo=True, verbose=False)


CONTENDERS: dict[str, Timed] = {
    "capture": _capture,
    ".pt2": _save(".pt2"),
    ".onnx": _save(".onnx"),
    "torch.export": _torch_export,
    "torch.onnx": _torch_onnx,
}


def measure(subject: Case, rounds: int) -> dict[str, Any]:
    """Processor seconds of each contender, and why one has none."""
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    refused: dict[str, str] = {}
    for _ in range(rounds):
        for name in (each for each in CONTENDERS if each not in refused):
            found = _apart(lambda name=name: once(subject, name))  # type: ignore[misc]  # of its default
            if isinstance(found, float):
                seconds[name].append(found)
            else:
                refused[name] = str(found)
    return {
        "model": subject.name,
        "seconds": {name: median(values) for name, values in seconds.items() if values},
        "refused": refused,
    }


def once(subject: Case, name: str) -> float | str:
    """Processor seconds of a contender; or why it refuses."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), quiet():
        target, args = subject.target(), subject.inputs[0]
        gc.collect()
        start = time.process_time()
        try:
            CONTENDERS[name](target, args, Path(folder))
        except Exception as error:  # of any kind: those of torch's exporters have no class in common
            return brief(error)
        return time.process_time() - start


def _apart(run: Callable[[], float | str]) -> float | str:
    """What a function gives in a process of its own, which begins as this one is now."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(run()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    found: float | str = json.loads(text or '"the process ended"')
    return found


@click.command()
@click.option("--model", "wanted", multiple=True, help="Only this one; may be repeated.")
@click.option("--rounds", default=3, show_default=True, help="How often each contender is timed.")
@click.option("--quick", is_flag=True, help="Two small models, once, to try the script.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to a file as well.")
def main(wanted: tuple[str, ...], rounds: int, quick: bool, json_path: Path | None) -> None:
    """Time captures and saves."""
    torch.set_num_threads(1)
    wanted = ("three lines", "scalar loop") if quick else wanted
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(machine())
    for name in CONTENDERS:
        once(SUBJECTS[0], name)
    gc.freeze()
    rows = []
    for subject in (each for each in SUBJECTS if not wanted or each.name in wanted):
        with console.status(subject.name):
            rows.append(measure(subject, 1 if quick else rounds))
    table = Table("model", *CONTENDERS, title="Processor seconds (and of the capture's)")
    for row in rows:
        table.add_row(row["model"], *(_cell(row, name) for name in CONTENDERS))
    console.print(table)
    write_json(json_path, rows)


def _cell(row: dict[str, Any], name: str) -> str:
    if name in row["refused"]:
        return "refused"
    seconds = row["seconds"]
    ratio = "" if name == "capture" or "capture" not in seconds else f" ({seconds[name] / seconds['capture']:.1f})"
    return f"{seconds[name]:.2f}{ratio}"


if __name__ == "__main__":
    main()
