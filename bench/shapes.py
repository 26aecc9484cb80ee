"""Batches of many shapes: how many programs they take, and how long, in stillgraph and in `torch.compile`.

``python bench/shapes.py [--backend eager] [--json FILE]``. Each model is called with 20 lengths in each of three batch
sizes, in a row; it is trained where that can be. Neither is told that sizes differ. The results are compared with eager
PyTorch's. Counted are programs (of Dynamo's, graphs that its backend is given), and the seconds of all sixty calls.
"""

from __future__ import annotations

import copy
import itertools
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, fx, nn
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.shapes``

import stillgraph as sg
from bench._judging import same
from bench._timing import machine, write_json
from bench.models import GrowingDecoder, StaticCacheDecoder
from examples.adaptive_computation import AdaptiveRNN
from examples.early_exit import EarlyExit
from examples.mixture_of_experts import Model as MixtureOfExperts
from examples.solver import cube_root
from stillgraph.demo.gpt2 import GreedyDecoder
from tests.cases.harness import program_count

BATCHES, LENGTHS = (2, 5, 3), range(2, 22)
CALLS = len(BATCHES) * len(LENGTHS)


class Recurrent(nn.Module):
    """A step of a cell for each row, and a condition on what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            h = torch.tanh(self.cell(x[:, step]) + h)
            if h.sum() > 0.5:
                h = h * 0.5
        return h


@dataclass(frozen=True)
class Subject:
    """A model and its input for a batch size and a length."""

    name: str
    make: Callable[[], Any]
    call: Callable[[int, int], Tensor]
    trains: bool = False


def _words(most: int) -> Callable[[int, int], Tensor]:
    return lambda batch, length: torch.arange(batch * length).reshape(batch, length) * 7 % most


def _normal(*width: int) -> Callable[[int, int], Tensor]:
    return lambda batch, length: torch.randn(batch, length, *width)


def subjects() -> list[Subject]:
    """What is called."""
    bert = BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    gpt2 = GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=64, use_cache=False, bos_token_id=1, eos_token_id=2
    )
    return [
        Subject("a step per row", Recurrent, _normal(8), trains=True),
        Subject("adaptive computation", AdaptiveRNN, lambda batch, length: torch.randn(length, batch, 3), trains=True),
        Subject("BERT", lambda: BertForPreTraining(bert), _words(50), trains=True),
        Subject("greedy decoding by GPT-2", lambda: GreedyDecoder(GPT2LMHeadModel(gpt2), 3, 24).eval(), _words(50)),
        Subject("a growing decoder", GrowingDecoder, _words(30)),
        Subject("a decoder with a static cache", StaticCacheDecoder, lambda b, length: _words(40)(b * length, 1)[:, 0]),
        Subject("early exit", EarlyExit, lambda batch, length: torch.randn(batch * length, 32)),
        Subject("mixture of experts", MixtureOfExperts, lambda b, length: torch.randn(b * length, 16), trains=True),
        Subject("cube root", lambda: cube_root, lambda batch, length: torch.rand(batch, length) * 9 + 1),
    ]


# ---- contenders
@dataclass
class Contender:
    """A way of compiling.

    Attributes:
        function: what is called.
        programs: says how many programs there are.
    """

    function: Any
    programs: Callable[[], int]


def ours(subject: Subject, backend: str, full_graph: bool) -> Contender:
    static = sg.to_static(_made(subject), backend=backend, full_graph=full_graph)
    return Contender(static, lambda: program_count(static))


def dynamos(subject: Subject, backend: str) -> Contender:
    torch._dynamo.reset()
    count = [0]
    compile_ = torch._dynamo.lookup_backend(backend)

    def counted(graph: fx.GraphModule, inputs: list[Any]) -> Any:
        count[0] += 1
        return compile_(graph, inputs)

    return Contender(torch.compile(_made(subject), backend=counted), lambda: count[0])


def _made(subject: Subject) -> Any:
    torch.manual_seed(0)
    return subject.make()


def outcomes(subject: Subject, function: Any) -> Iterator[Any]:
    """What each call gives, with the gradients of the parameters where the model is trained."""
    for batch, length in itertools.product(BATCHES, LENGTHS):
        torch.manual_seed(batch * 100 + length)
        x = subject.call(batch, length)
        if not subject.trains:
            with torch.no_grad():
                value = function(x)
            yield copy.deepcopy(value)
            continue
        function.zero_grad()
        value = function(x)
        sum(each.square().sum() for each in _floats(value)).backward()
        yield [parameter.grad for parameter in function.parameters()]


def _floats(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value] if value.requires_grad else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [each for part in parts for each in _floats(part)]


@dataclass
class Figures:
    """What was seen of a contender."""

    programs: int = 0
    seconds: float = 0.0
    last: float = 0.0  # seconds of the calls of the last batch size, by when there should be nothing new
    right: int = 0
    error: str = ""

    def cells(self) -> list[str]:
        """For the table."""
        if self.error:
            return [self.error]
        return [str(self.programs), f"{self.seconds:.2f}", f"{self.last:.3f}", f"{self.right} of {CALLS}"]


def measured(subject: Subject, contenders: Mapping[str, Contender]) -> dict[str, Figures]:
    """Call all contenders in turn, shape by shape; the first is eager PyTorch."""
    figures = {name: Figures() for name in contenders}
    calls = {name: outcomes(subject, each.function) for name, each in contenders.items()}
    for number in range(CALLS):
        expected = None
        for name, running in calls.items():
            at = time.perf_counter()
            try:
                found = next(running)
            except Exception as error:  # of any kind: a contender's
                figures[name].error = figures[name].error or f"{type(error).__name__}: {error}".split("\n")[0][:80]
                continue
            elapsed = time.perf_counter() - at
            figures[name].seconds += elapsed
            figures[name].last += elapsed if number >= CALLS - len(LENGTHS) else 0.0
            expected = found if expected is None else expected
            figures[name].right += same(expected, found)
    for name, contender in contenders.items():
        figures[name].programs = contender.programs()
    return figures


@click.command()
@click.option("--backend", default="eager", show_default=True, help="what compiles the graphs")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="write the figures to this file")
@click.option("--only", multiple=True, help="the beginning of a model's name")
def main(backend: str, json_path: Path | None, only: tuple[str, ...]) -> None:
    """Print the programs and seconds of sixty calls of sixty shapes."""
    warnings.filterwarnings("ignore")
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    console, results = Console(width=140), dict[str, Any]()
    table = Table("model", "contender", "programs", "seconds, 60 calls", "seconds, last 20", "right")
    for subject in subjects():
        if only and not subject.name.startswith(only):
            continue
        contenders = {
            "eager": Contender(_made(subject), lambda: 0),
            "stillgraph": ours(subject, backend, full_graph=True),
            "stillgraph, full_graph=False": ours(subject, backend, full_graph=False),
            "torch.compile": dynamos(subject, backend),
        }
        for name, found in measured(subject, contenders).items():
            results[f"{subject.name}, {name}"] = asdict(found)
            table.add_row(subject.name, name, *found.cells())
            print(subject.name, name, *found.cells(), sep=", ", flush=True)
    console.print(machine(), table)
    write_json(json_path, results)


if __name__ == "__main__":
    main()
