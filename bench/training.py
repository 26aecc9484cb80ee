"""Training: how long a step takes, and what a run keeps in memory.

``python -m bench.training [--rounds N] [--memory-steps N] [--json FILE]``. A step is the forward pass, the loss, the
backward pass and AdamW, on three models: a BERT (Hugging Face's, without dropout, so that all contenders draw the same
numbers: none), and two of ``examples/`` whose control flow is for the data to say, an adaptive-computation-time network
and a mixture of experts, on which ``torch.compile`` breaks its graph. Every contender trains a copy of the model on the
same batches, and has to have eager's losses; they take turns.

Resident memory is read in a process of its own for each contender: after the steps that compile, and many steps later.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.training``

import stillgraph as sg
from bench._timing import interleave, machine, median, median_ratio, write_json
from examples.adaptive_computation import AdaptiveRNN
from examples.mixture_of_experts import Model as MixtureOfExperts

ROOT = Path(__file__).resolve().parents[1]
Batch = tuple[Any, ...]
Step = Callable[[int], float]

CONTENDERS: dict[str, Callable[[nn.Module], Any]] = {
    "eager": lambda model: model,
    "torch.compile": torch.compile,
    "stillgraph (eager)": lambda model: sg.to_static(model, backend="eager"),
    "stillgraph (inductor)": sg.to_static,
}
_BATCHES = 16  # that come round again
_TOLERANCE = 1e-3  # of the losses, for Inductor computes in another order


@dataclass(frozen=True)
class Subject:
    """A model to train: how it is made, batch ``number``, and the loss of a batch."""

    name: str
    make: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    loss: Callable[[Any, Batch], Tensor]


def _bert(size: str) -> Subject:
    from transformers import BertConfig, BertForPreTraining

    width, layers, length, count = (128, 4, 64, 8) if size == "full" else (32, 1, 8, 2)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * width,
        max_position_embeddings=length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )

    def batch(number: int) -> Batch:
        generator = torch.Generator().manual_seed(number)
        tokens = torch.randint(5, config.vocab_size, (count, length), generator=generator)
        hidden = torch.rand(tokens.shape, generator=generator) < 0.15
        follows = torch.randint(0, 2, (count,), generator=generator)
        return tokens.masked_fill(hidden, 4), tokens.masked_fill(~hidden, -100), follows

    def loss(model: Any, batch: Batch) -> Tensor:
        result: Tensor = model(input_ids=batch[0], labels=batch[1], next_sentence_label=batch[2]).loss
        return result

    return Subject("BERT", lambda: BertForPreTraining(config), batch, loss)


def _adaptive(size: str) -> Subject:
    length, count, width = (8, 64, 128) if size == "full" else (2, 4, 8)

    def batch(number: int) -> Batch:
        bits = torch.randint(0, 2, (length, count, 3), generator=torch.Generator().manual_seed(number)).float()
        return bits, bits.sum(-1).cumsum(0).T

    def loss(model: Any, batch: Batch) -> Tensor:
        predicted, cost, _ = model(batch[0])
        return nn.functional.mse_loss(predicted, batch[1]) + 0.01 * cost

    return Subject("ACT-RNN", lambda: AdaptiveRNN(width=width), batch, loss)


def _experts(size: str) -> Subject:
    count, width = (512, 128) if size == "full" else (16, 16)

    def batch(number: int) -> Batch:
        generator = torch.Generator().manual_seed(number)
        words = torch.randn(count, width, generator=generator) + 2 * torch.randn(1, width, generator=generator)
        return words, 2 * (words[:, 0] > 0).long() + (words[:, 1] * words[:, 2] > 0).long()

    def loss(model: Any, batch: Batch) -> Tensor:
        predicted, balance, _ = model(batch[0])
        return nn.functional.cross_entropy(predicted, batch[1]) + 0.02 * balance

    return Subject("mixture of experts", lambda: MixtureOfExperts(width), batch, loss)


SUBJECTS: dict[str, Callable[[str], Subject]] = {"bert": _bert, "act": _adaptive, "moe": _experts}


def trainer(subject: Subject, wrap: Callable[[nn.Module], Any]) -> Step:
    """What makes step ``number`` and gives its loss; every trainer of a subject begins alike."""
    torch.manual_seed(0)
    plain = subject.make().train()
    model = wrap(copy.deepcopy(plain))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = [subject.batch(number) for number in range(_BATCHES)]

    def step(number: int) -> float:
        loss = subject.loss(model, batches[number % _BATCHES])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


# ---- time
def times(subject: Subject, rounds: int, warmup: int) -> dict[str, Any]:
    """Milliseconds of a step by each contender, and the ratios to eager's round by round."""
    torch._dynamo.reset()
    steps = {name: trainer(subject, wrap) for name, wrap in CONTENDERS.items()}
    expected = [steps["eager"](number) for number in range(warmup)]
    for name in list(CONTENDERS)[1:]:
        losses = [steps[name](number) for number in range(warmup)]
        torch.testing.assert_close(losses, expected, rtol=_TOLERANCE, atol=_TOLERANCE, msg=f"{name}: other losses")
    done = dict.fromkeys(steps, warmup)

    def prepared(name: str) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            number = done[name]
            done[name] += 1
            return lambda: steps[name](number)

        return prepare

    seconds = interleave({name: prepared(name) for name in steps}, rounds=rounds)
    return {
        "model": subject.name,
        "milliseconds": {name: median(values) * 1e3 for name, values in seconds.items()},
        "of eager": {name: median_ratio(values, seconds["eager"]) for name, values in seconds.items()},
        "of torch.compile": {name: median_ratio(values, seconds["torch.compile"]) for name, values in seconds.items()},
    }


# ---- memory
def resident() -> float | None:
    """The resident memory of this process in MiB, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(subject: Subject, contender: str, warmup: int, steps: int) -> list[float | None]:
    """The resident memory after the warm-up and at four points of the steps after it; for a process of its own."""
    step = trainer(subject, CONTENDERS[contender])
    readings = []
    for number in range(warmup + steps + 1):
        if number >= warmup and (number - warmup) % max(1, steps // 4) == 0:
            gc.collect()
            readings.append(resident())
        step(number)
    return readings


def memories(subject: str, size: str, warmup: int, steps: int) -> dict[str, Any]:
    """The readings of each contender, from processes of their own."""
    readings = {}
    for contender in CONTENDERS:
        command = [sys.executable, "-m", "bench.training", "--read-memory", subject, contender]
        options = ["--size", size, "--warmup", str(warmup), "--memory-steps", str(steps)]
        finished = subprocess.run([*command, *options], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        readings[contender] = json.loads(finished.stdout.splitlines()[-1])
    return {"model": SUBJECTS[subject](size).name, "resident": readings}


# ---- the command
def _print(console: Console, timed: list[dict[str, Any]], kept: list[dict[str, Any]], steps: int) -> None:
    names = list(CONTENDERS)
    table = Table("model", *names, title="Milliseconds of a training step (and of eager's, round by round)")
    for row in timed:
        cells = (f"{row['milliseconds'][name]:.1f} ({row['of eager'][name]:.2f})" for name in names)
        table.add_row(row["model"], *cells)
    console.print(table)
    if kept:
        table = Table("model", *names, title=f"Resident MiB after the warm-up, and {steps} steps later")
        for row in kept:
            table.add_row(row["model"], *(_span(row["resident"][name]) for name in names))
        console.print(table)


def _span(readings: list[float | None]) -> str:
    first, last = readings[0], readings[-1]
    return "unknown" if first is None or last is None else f"{first:.0f} → {last:.0f}"


@click.command()
@click.option("--rounds", default=41, show_default=True, help="How often each contender is timed.")
@click.option("--warmup", default=32, show_default=True, help="Steps before, in which everything is compiled.")
@click.option("--memory-steps", default=400, show_default=True, help="Steps over which memory is read; 0: not at all.")
@click.option("--model", "only", type=click.Choice(list(SUBJECTS)), multiple=True, help="These models alone.")
@click.option("--size", type=click.Choice(["full", "tiny"]), default="full", help="Tiny models only try the script.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to a file as well.")
@click.option("--read-memory", nargs=2, hidden=True, help="Model and contender: print readings of this process.")
def main(
    rounds: int,
    warmup: int,
    memory_steps: int,
    only: tuple[str, ...],
    size: str,
    json_path: Path | None,
    read_memory: tuple[str, str] | None,
) -> None:
    """Time training steps, and read what a run keeps in memory."""
    torch.set_num_threads(1)
    if read_memory:
        name, contender = read_memory
        print(json.dumps(memory(SUBJECTS[name](size), contender, warmup, memory_steps)))
        return
    console = Console()
    console.print(machine())
    names = only or tuple(SUBJECTS)
    timed = [times(SUBJECTS[name](size), rounds, warmup) for name in names]
    kept = [memories(name, size, warmup, memory_steps) for name in names] if memory_steps else []
    _print(console, timed, kept, memory_steps)
    if json_path is not None:
        write_json(json_path, {"times": timed, "memory": kept})


if __name__ == "__main__":
    main()
