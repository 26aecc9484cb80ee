"""BERT's pretraining through `symbolic_trace`: steps per second, and how long its capture takes.

``python -m bench.bert [--rounds N] [--capture-rounds N] [--device D] [--quick] [--json FILE]``. Every contender trains
a copy of Hugging Face's BERT (random, with dropout) on the same batches, drawing the same numbers, and has to have
eager's losses exactly; they take turns. ``sg.symbolic_trace(model)`` is called anew in each step, as training loops for
Paddle do. The capture is that of a BERT of 12 layers, in a static function of its own, or with Dynamo reset.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.bert``

import stillgraph as sg
from bench._timing import Prepare, interleave, machine, median, median_ratio, write_json

FULL, PARTIAL, EAGER, DYNAMO = "to_static", "symbolic_trace", "eager", "torch.compile"
VOCABULARY, BATCHES = 1000, 16
LAYERS = 12


def config(width: int, layers: int) -> BertConfig:
    """A BERT of so many layers."""
    return BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * width,
        max_position_embeddings=64,
    )


def batch(number: int, count: int, length: int, device: str = "cpu") -> dict[str, Tensor]:
    """Tokens of which some are hidden, the mask of their lengths, and whether the second sentence follows."""
    generator = torch.Generator().manual_seed(number)
    tokens = torch.randint(5, VOCABULARY, (count, length), generator=generator)
    hidden = torch.rand(tokens.shape, generator=generator) < 0.15
    lengths = torch.randint(length // 2, length + 1, (count, 1), generator=generator)
    made = {
        "input_ids": tokens.masked_fill(hidden, 4),
        "attention_mask": (torch.arange(length) < lengths).long(),
        "labels": tokens.masked_fill(~hidden, -100),
        "next_sentence_label": torch.randint(0, 2, (count,), generator=generator),
    }
    return {name: tensor.to(device) for name, tensor in made.items()}


# ---- steps
def _static(model: nn.Module) -> Callable[[], Any]:
    sg.to_static(model, backend="eager")
    return lambda: model


CALLS: Mapping[str, Callable[[nn.Module], Callable[[], Any]]] = {
    EAGER: lambda model: lambda: model,
    FULL: _static,
    PARTIAL: lambda model: lambda: sg.symbolic_trace(model, strict=True),
}
"""By name: given a model, what gives what a step calls."""


def trainer(name: str, width: int, layers: int, count: int, length: int, device: str = "cpu") -> Callable[[int], float]:
    """What makes step ``number`` and gives its loss."""
    torch.manual_seed(0)
    model = BertForPreTraining(config(width, layers)).train().to(device)
    called = CALLS[name](model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = [batch(number, count, length, device) for number in range(BATCHES)]

    def step(number: int) -> float:
        torch.manual_seed(number)  # of the dropout
        loss = called()(**batches[number % BATCHES]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found: float = loss.item()
        return found

    return step


def steps(rounds: int, device: str, sizes: tuple[int, int, int, int], warmup: int = 3) -> dict[str, list[float]]:
    """Seconds of a training step by each contender, round by round."""
    trainers = {name: trainer(name, *sizes, device=device) for name in CALLS}
    losses = {name: [step(number) for number in range(warmup)] for name, step in trainers.items()}
    if any(found != losses[EAGER] for found in losses.values()):
        raise AssertionError(f"other losses than eager's: {losses}")
    done = dict.fromkeys(trainers, warmup)

    def prepared(name: str) -> Prepare:
        def prepare() -> Callable[[], object]:
            number = done[name]
            done[name] += 1
            return lambda: trainers[name](number)

        return prepare

    return interleave({name: prepared(name) for name in trainers}, rounds=rounds)


# ---- captures
def captures(rounds: int, device: str, width: int, layers: int) -> tuple[dict[str, list[float]], int]:
    """Seconds of the first call by each contender, round by round, and how many graphs Dynamo makes of it."""
    torch.manual_seed(0)
    model = BertForPreTraining(config(width, layers)).train().to(device)
    inputs = batch(0, 2, 16, device)

    def full() -> Callable[[], object]:
        static = sg.to_static(model.forward, backend="eager")
        return lambda: static(**inputs)

    def partial() -> Callable[[], object]:
        static = sg.to_static(model.forward, backend="eager", full_graph=False, strict=True)
        return lambda: static(**inputs)

    def dynamo() -> Callable[[], object]:
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="eager")
        return lambda: compiled(**inputs)

    torch._dynamo.reset()
    graphs = torch._dynamo.explain(model)(**inputs).graph_count
    return interleave({FULL: full, PARTIAL: partial, DYNAMO: dynamo}, rounds=rounds), graphs


# ---- the command
@click.command()
@click.option("--rounds", default=41, show_default=True, help="How many steps of each contender are timed.")
@click.option("--capture-rounds", default=7, show_default=True, help="How many captures of each are.")
@click.option("--device", default="cpu", show_default=True, help="Where the models and batches are.")
@click.option("--quick", is_flag=True, help="A tiny model and few rounds: whether it works at all.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every figure to this file.")
def main(rounds: int, capture_rounds: int, device: str, quick: bool, json_file: Path | None) -> None:
    """Measure and print the tables."""
    torch.set_num_threads(1)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without which it is not deterministic
    torch.use_deterministic_algorithms(device != "cpu")
    console = Console()
    if quick:
        rounds, capture_rounds = min(rounds, 3), min(capture_rounds, 1)
    sizes = (16, 1, 2, 8) if quick else (128, 4, 8, 64)
    layers = 1 if quick else LAYERS
    stepped = steps(rounds, device, sizes)
    table = Table("contender", "ms of a step", "steps per second, of to_static's", "of eager's", title="Training")
    for name, seconds in stepped.items():
        ratios = [1 / median_ratio(seconds, stepped[other]) for other in (FULL, EAGER)]
        table.add_row(name, f"{median(seconds) * 1e3:.1f}", *(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)
    captured, graphs = captures(capture_rounds, device, sizes[0], layers)
    table = Table("contender", "seconds", "of Dynamo's", "of to_static's", title=f"First call, {layers} layers")
    for name, seconds in captured.items():
        ratios = [median_ratio(seconds, captured[other]) for other in (DYNAMO, FULL)]
        table.add_row(name, f"{median(seconds):.3f}", *(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)
    console.print(f"Dynamo makes {graphs} graphs of it.")
    console.print(machine())
    write_json(json_file, {"steps": stepped, "captures": captured, "graphs of Dynamo": graphs})


if __name__ == "__main__":
    main()
