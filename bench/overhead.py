"""What a warm call costs beyond the bare graph: stillgraph against `torch.compile`.

``python bench/overhead.py [--rounds N] [--breaking] [--json FILE]``. Both run PyTorch's operators as they are
(``backend="eager"``), so what a call adds is guards, fetching the parameters, and rebuilding the result. Each is
measured against the very graph it captured, called with the very tensors it passes.

With ``--breaking``, of functions in which Python has to do something in between: there is no one graph then, so each
call is measured against eager PyTorch's, which does the same steps.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, fx, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.overhead``

import stillgraph as sg
from bench._timing import machine, median, median_difference, median_ratio, per_call, write_json
from stillgraph.runtime.native.function_writer import read_source


@dataclass(frozen=True)
class Subject:
    """A function or module and its arguments."""

    name: str
    make: Callable[[], Callable[..., Any]]
    args: tuple[Any, ...]


class Blocks(nn.Module):
    """Fifty residual blocks: normalisation, two linear layers, an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4)) for _ in range(50)
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


def one_operator(x: Tensor) -> Tensor:
    return torch.sin(x)


def three_inputs_and_a_dict(x: Tensor, y: Tensor, options: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    return {"sum": x + y, "scaled": options["z"] * scale}


def subjects() -> list[Subject]:
    """What is called."""
    x = torch.randn(4, 4)
    return [
        Subject("1 operator", lambda: one_operator, (x,)),
        Subject("dict in, dict out", lambda: three_inputs_and_a_dict, (x, x + 1, {"z": x + 2}, 0.5)),
        Subject("1 linear layer", lambda: nn.Linear(4, 4), (x,)),
        Subject("50 residual blocks", Blocks, (x,)),
        Subject("200 linear layers", lambda: nn.Sequential(*(nn.Linear(4, 4) for _ in range(200))), (x,)),
    ]


# ---- Python has something to do in between
SINK = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
logger = logging.getLogger("bench.overhead")
logger.setLevel(logging.INFO)
logger.propagate = False
logger.addHandler(logging.StreamHandler(SINK))


def printed(x: Tensor) -> Tensor:
    y = torch.tanh(x) * 2
    print("sum", y.sum().item(), file=SINK)
    return y + x


def logged(x: Tensor) -> Tensor:
    y = torch.tanh(x) * 2
    logger.info("sum %.3f", y.sum().item())
    return y + x


def appended(x: Tensor, sums: list[float]) -> Tensor:
    y = torch.tanh(x) * 2
    sums.append(y.sum().item())
    return y + x


def listed(x: Tensor) -> tuple[Tensor, list[str]]:
    found = []
    for k in range(3):
        x = torch.tanh(x) * 2
        found.append(f"step {k}: {x.sum().item():.2f}")
    return x, found


def clipped(x: Tensor) -> Tensor:
    norm = x.norm().item()
    if norm > 1.0:
        x = x / norm
    return x + 1


def breaking() -> list[Subject]:
    """What is called and breaks; lists among the arguments are empty in each call."""
    x = torch.randn(4, 4)
    return [
        Subject("print(..., file=) of an .item()", lambda: printed, (x,)),
        Subject("logging of an .item()", lambda: logged, (x,)),
        Subject("an .item() appended to a list of the caller's", lambda: appended, (x, [])),
        Subject("a list of three texts of .item()", lambda: listed, (x,)),
        Subject("a decision by an .item()", lambda: clipped, (x,)),
    ]


Call = Callable[[], object]


def afresh(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A call."""
    for each in args:
        if isinstance(each, list):
            each.clear()
    return function(*args)


def measure_breaking(subject: Subject, rounds: int) -> dict[str, list[float]]:
    """Seconds per call of eager PyTorch, and of the contenders that may break.

    Raises:
        AssertionError: one of them gives something else than eager PyTorch.
    """
    torch._dynamo.reset()
    made = {
        "eager": subject.make(),
        "full_graph=False": sg.to_static(subject.make(), backend="eager", full_graph=False, strict=True),
        "torch.compile": torch.compile(subject.make(), backend="eager"),
    }
    calls: dict[str, Call] = {name: partial(afresh, function, subject.args) for name, function in made.items()}
    expected = repr((calls["eager"](), subject.args))
    for name, call in calls.items():
        for _ in range(_WARM):
            assert repr((call(), subject.args)) == expected, f"{name} gives something else for {subject.name}"
    return per_call(calls, rounds=rounds)


_WARM = 5  # the third call is the first one in which all steps between programs are compiled


def stillgraphs(subject: Subject, full_graph: bool = True) -> tuple[Call, Call]:
    """A call of a static function, and of its program's graph."""
    static = sg.to_static(subject.make(), backend="eager", full_graph=full_graph)
    function = static.forward if isinstance(static, nn.Module) else static
    static(*subject.args)
    (program,) = function.programs
    args = (static, *subject.args) if isinstance(static, nn.Module) else subject.args
    inputs = tuple(read_source(item.source, args, {}) for item in program.inputs)
    return partial(static, *subject.args), partial(program.graph.forward, *inputs)


def dynamos(subject: Subject) -> tuple[Call, Call]:
    """A call of a compiled function, and of the graph that Dynamo gives to its backend."""
    graphs: list[Call] = []

    def keep(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        def first(*args: Any) -> Any:
            graphs.append(partial(graph.forward, *args))
            return graph.forward(*args)

        return first

    target = subject.make()
    torch._dynamo.reset()
    torch.compile(target, backend=keep, fullgraph=True)(*subject.args)
    torch._dynamo.reset()
    return partial(torch.compile(target, backend="eager", fullgraph=True), *subject.args), graphs[0]


CONTENDERS: Mapping[str, Callable[[Subject], tuple[Call, Call]]] = {
    "stillgraph": stillgraphs,
    "full_graph=False": partial(stillgraphs, full_graph=False),
    "torch.compile": dynamos,
}


def measure(subject: Subject, rounds: int) -> dict[str, list[float]]:
    """Seconds per call of eager PyTorch, of each contender, and of its bare graph under ``<name> graph``."""
    calls: dict[str, Call] = {"eager": partial(subject.make(), *subject.args)}
    for name, prepare in CONTENDERS.items():
        calls[name], calls[f"{name} graph"] = prepare(subject)
    return per_call(calls, rounds=rounds)


@click.command()
@click.option("--rounds", default=101, show_default=True, help="Rounds that are kept.")
@click.option("--breaking", "breaks", is_flag=True, help="Only functions that leave something to Python.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every figure to this file.")
def main(rounds: int, breaks: bool, json_file: Path | None) -> None:
    """Measure and print the table."""
    torch.set_num_threads(1)
    console = Console()
    results = _of_breaking(console, rounds) if breaks else _of_one_graph(console, rounds)
    console.print(machine())
    write_json(json_file, results)


def _of_one_graph(console: Console, rounds: int) -> dict[str, dict[str, list[float]]]:
    table = Table(title=f"Microseconds of a warm call beyond its bare graph, median of {rounds} rounds")
    table.add_column("what", no_wrap=True)
    for column in ("eager", "graph", *CONTENDERS, "ratio"):
        table.add_column(column, justify="right")
    results: dict[str, dict[str, list[float]]] = {}
    with torch.no_grad():
        for subject in subjects():
            with console.status(f"calling {subject.name} …"):
                results[subject.name] = measure(subject, rounds)
            _add_row(table, subject.name, results[subject.name])
    console.print(table)
    return results


def _of_breaking(console: Console, rounds: int) -> dict[str, dict[str, list[float]]]:
    table = Table(title=f"Microseconds of a warm call, and of that beyond eager, median of {rounds} rounds")
    table.add_column("what", no_wrap=True)
    for column in ("eager", "stillgraph", "beyond", "compile", "beyond", "ratio of calls"):
        table.add_column(column, justify="right")
    results: dict[str, dict[str, list[float]]] = {}
    with torch.no_grad():
        for subject in breaking():
            with console.status(f"calling {subject.name} …"):
                seconds = results[subject.name] = measure_breaking(subject, rounds)
            eager, ours, theirs = seconds.values()
            micro = [median(eager)]
            for each in (ours, theirs):
                micro += [median(each), median_difference(each, eager)]
            table.add_row(subject.name, *(f"{1e6 * value:.1f}" for value in micro), f"{median_ratio(ours, theirs):.2f}")
    console.print(table)
    return results


def _add_row(table: Table, subject: str, seconds: dict[str, list[float]]) -> None:
    overhead = {name: median_difference(seconds[name], seconds[f"{name} graph"]) for name in CONTENDERS}
    micro = [median(seconds["eager"]), median(seconds["stillgraph graph"]), *overhead.values()]
    ratio = overhead["stillgraph"] / overhead["torch.compile"]
    table.add_row(subject, *(f"{1e6 * value:.1f}" for value in micro), f"{ratio:.2f}")


if __name__ == "__main__":
    main()
