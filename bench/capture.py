"""Seconds to capture a 12-layer model: stillgraph, with and without a full graph, `torch.compile(backend="eager")` and
`torch.export`.

``python bench/capture.py [--rounds N] [--json FILE]``. In every round each contender starts afresh: a new static
function, Dynamo reset. The weights are small, so that the time is the capture's and not the arithmetic's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.capture``

import stillgraph as sg
from bench._timing import Prepare, interleave, machine, median, median_ratio, write_json

LAYERS = 12
OURS, DYNAMO = "stillgraph", "torch.compile"


@dataclass(frozen=True)
class Subject:
    """A model and the inputs of one call."""

    name: str
    model: nn.Module
    inputs: Mapping[str, Tensor]


def subjects() -> list[Subject]:
    """The models that are captured."""
    torch.manual_seed(0)
    tokens = torch.randint(0, 200, (2, 16))
    bert = BertConfig(
        vocab_size=200,
        hidden_size=128,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
    )
    gpt2 = GPT2Config(
        vocab_size=200,
        n_embd=128,
        n_layer=LAYERS,
        n_head=4,
        n_positions=64,
        use_cache=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    mask = torch.ones_like(tokens)
    return [
        Subject("BERT", BertForPreTraining(bert).eval(), {"input_ids": tokens, "attention_mask": mask}),
        Subject("GPT-2", GPT2LMHeadModel(gpt2).eval(), {"input_ids": tokens}),
    ]


def contenders(subject: Subject) -> dict[str, Prepare]:
    """By name: a preparation that makes a fresh capture of the subject."""

    def program() -> Callable[[], object]:
        static = sg.to_static(subject.model.forward, backend="eager")
        return lambda: static.get_program(**subject.inputs)

    def first_call() -> Callable[[], object]:
        static = sg.to_static(subject.model.forward, backend="eager")
        return lambda: static(**subject.inputs)

    def without_full_graph() -> Callable[[], object]:  # as `symbolic_trace`, which keeps what it captured of a function
        static = sg.to_static(subject.model.forward, full_graph=False, backend="eager")
        return lambda: static(**subject.inputs)

    def dynamo() -> Callable[[], object]:
        torch._dynamo.reset()
        compiled = torch.compile(subject.model, backend="eager")
        return lambda: compiled(**subject.inputs)

    def export() -> Callable[[], object]:
        torch._dynamo.reset()
        return lambda: torch.export.export(subject.model, (), dict(subject.inputs))

    return {
        OURS: program,
        f"{OURS}, capture and call": first_call,
        f"{OURS}, full_graph=False": without_full_graph,
        DYNAMO: dynamo,
        "torch.export": export,
    }


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Rounds that are kept; one more comes first.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every figure to this file.")
def main(rounds: int, json_file: Path | None) -> None:
    """Measure and print the table."""
    console = Console()
    table = Table(title=f"Seconds to capture, median of {rounds} rounds; {LAYERS} layers")
    for column in ("model", "contender"):
        table.add_column(column)
    for column in ("seconds", "of Dynamo's"):
        table.add_column(column, justify="right")
    results: dict[str, dict[str, list[float]]] = {}
    with torch.no_grad():
        for subject in subjects():
            with console.status(f"capturing {subject.name} …"):
                results[subject.name] = interleave(contenders(subject), rounds=rounds)
            _add_rows(table, subject.name, results[subject.name])
    console.print(table)
    console.print(machine())
    write_json(json_file, results)


def _add_rows(table: Table, subject: str, seconds: dict[str, list[float]]) -> None:
    for name, samples in seconds.items():
        ratio = median_ratio(samples, seconds[DYNAMO])
        table.add_row(subject, name, f"{median(samples):.3f}", f"{ratio:.2f}")
        subject = ""
    table.add_section()


if __name__ == "__main__":
    main()
