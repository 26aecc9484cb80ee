"""Where a graph breaks and what that costs: `stillgraph.symbolic_trace` against Dynamo.

``python -m bench.breaks [--rounds N] [--group models|functions] [--only NAME]... [--quick] [--json FILE]``. Of whole
models and of small functions as people write them: how many subgraphs and breaks the first call has, by `explain` of
either; how many subgraphs all inputs need together, among which are some that take other branches; and the seconds of
the first call, both on the ``eager`` backend. Each round starts afresh: a new static function, Dynamo reset.

Before anything is counted, both are called with every input, and have to give eager PyTorch's results, printing,
exceptions and attributes. What is timed has been captured before in the process. Dynamo leaves out graphs without an
operator; stillgraph's are counted with the others. Fewer subgraphs are not always better: either may leave a whole call
to Python, as Dynamo does with a frame whose loop would break, and then has no subgraph of it.
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import fx, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.breaks``

import stillgraph as sg
from bench._judging import brief, same, within
from bench._timing import Prepare, interleave, machine, median, median_ratio, write_json
from bench.models import MODELS
from bench.snippets import SNIPPETS
from tests.cases.case import Case
from tests.e2e import huggingface_models

OURS, DYNAMO = "symbolic_trace", "Dynamo"
HUGGING_FACE = ("bert", "gpt2", "llama", "mixtral", "mamba", "t5", "whisper", "vit", "resnet", "clip")
WRITTEN = (
    "GPT-2, greedy",
    "greedy, static cache",
    "beam search",
    "RNN-T, greedy",
    "NMS",
    "DETR",
    "ODE, adaptive step",
    "early exit",
    "mixture of experts",
    "adaptive computation",
)
QUICK = ("early exit", "clip by norm", "print the mean")
SECONDS = 300
Call = tuple[tuple[Any, ...], Mapping[str, Any]]


@dataclass(frozen=True)
class Subject:
    """A function or module, the arguments of its calls, and the attributes that calls change."""

    name: str
    make: Callable[[], Any]
    calls: tuple[Call, ...]
    attrs: tuple[str, ...] = ()

    def target(self) -> Any:
        """A fresh one: nothing that was captured is kept with it."""
        torch.manual_seed(0)
        made = self.make()
        return _copied(made) if isinstance(made, FunctionType) else made

    def call(self, target: Any, number: int = 0) -> Any:
        """One call, with copies of its arguments."""
        args, kwargs = copy.deepcopy(self.calls[number])
        torch.manual_seed(number)
        return target(*args, **kwargs)


def _copied(function: FunctionType) -> FunctionType:
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def groups() -> dict[str, list[Subject]]:
    """What is captured: twenty models and small functions."""
    written = {case.name: case for case in MODELS}
    models = [_hugging_face(name) for name in HUGGING_FACE] + [_of_case(written[name]) for name in WRITTEN]
    return {"models": models, "functions": [_of_case(case) for case in SNIPPETS]}


def _of_case(case: Case) -> Subject:
    return Subject(case.name, case.make, tuple((args, case.kwargs) for args in case.inputs), case.attrs)


def _hugging_face(name: str) -> Subject:
    model = huggingface_models.MODELS[name]
    return Subject(name, model.build, tuple(((), model.make_inputs(seed)) for seed in (1, 2)))


# ---- the contenders
def ours(subject: Subject) -> Any:
    """A fresh static function or module."""
    return sg.symbolic_trace(subject.target())


def dynamos(subject: Subject, backend: Any = "eager") -> Any:
    """A freshly compiled function or module; what Dynamo knew is forgotten."""
    torch._dynamo.reset()
    return torch.compile(subject.target(), backend=backend)


def prepared(make: Callable[[Subject], Any], subject: Subject) -> Prepare:
    """What is timed: the first call."""

    def prepare() -> Callable[[], object]:
        target = make(subject)
        return lambda: _outcome(subject, target, 0)

    return prepare


# ---- judging and counting
@dataclass(frozen=True)
class Counts:
    """Subgraphs and breaks.

    Attributes:
        subgraphs, breaks: of the first call.
        in_all: subgraphs after the calls with all inputs.
        differs: how a call differs from eager PyTorch; None where none does.
        told: that a call, or a part of it, was made in plain PyTorch; None where none was.
        reasons: of the breaks.
    """

    subgraphs: int
    breaks: int
    in_all: int
    differs: str | None = None
    told: str | None = None
    reasons: tuple[str, ...] = ()


def _outcome(subject: Subject, target: Any, number: int) -> tuple[Any, str]:
    """The result or the error of a call, and what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            result = subject.call(target, number)
        except Exception as error:
            result = brief(error)
    return result, text.getvalue()


def outcomes(subject: Subject, target: Any) -> Iterator[tuple[Any, str, list[Any]]]:
    """Of each call: the result or error, what it printed, and the attributes after it."""
    for number in range(len(subject.calls)):
        result, text = _outcome(subject, target, number)
        state = [copy.deepcopy(getattr(target, name)) for name in subject.attrs]
        yield result, text, state


def difference(subject: Subject, target: Any) -> str | None:
    """How the calls of `target` differ from those of eager PyTorch."""
    pairs = zip(outcomes(subject, subject.target()), outcomes(subject, target), strict=True)
    for number, (expected, found) in enumerate(pairs):
        if expected[1] != found[1]:
            return f"input {number}: it prints {found[1]!r}"
        if not same(expected[0], found[0]) or not same(expected[2], found[2]):
            return f"input {number}: {found[0]!r:.200}"
    return None


def count_ours(subject: Subject) -> Counts:
    """Judge and count `symbolic_trace`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        target = ours(subject)
        differs = difference(subject, target)
        in_all = len(_static(target).explain().subgraphs)
        target = ours(subject)
        _outcome(subject, target, 0)
    told = next((str(each.message) for each in caught if "plain PyTorch" in str(each.message)), None)
    first = _static(target).explain()
    reasons = tuple(f"{each.text}: {each.reason}" for each in first.breaks)
    return Counts(len(first.subgraphs), len(first.breaks), in_all, differs, told, reasons)


def _static(target: Any) -> Any:
    return target.forward if isinstance(target, nn.Module) else target


def count_dynamos(subject: Subject) -> Counts:
    """Judge and count Dynamo."""
    in_all = 0

    def backend(graph: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        nonlocal in_all
        in_all += 1
        return graph.forward

    differs = difference(subject, dynamos(subject, backend))
    target = subject.target()
    with contextlib.redirect_stdout(io.StringIO()):
        args, kwargs = copy.deepcopy(subject.calls[0])
        first = torch._dynamo.explain(target)(*args, **kwargs)
    reasons = tuple(each.reason.splitlines()[0] for each in first.break_reasons)
    return Counts(first.graph_count, max(0, first.graph_break_count), in_all, differs, None, reasons)


COUNTS: Mapping[str, Callable[[Subject], Counts]] = {OURS: count_ours, DYNAMO: count_dynamos}
CONTENDERS: Mapping[str, Callable[[Subject], Any]] = {OURS: ours, DYNAMO: dynamos}


@dataclass(frozen=True)
class Row:
    """What was found of one subject; a contender that fails has no counts."""

    counts: dict[str, Counts] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)


def measure(subject: Subject, rounds: int) -> Row:
    """Judge, count and time both on one subject; only what gives eager PyTorch's results is timed."""
    row = Row()
    for name, count in COUNTS.items():
        try:
            with within(SECONDS):
                row.counts[name] = count(subject)
        except Exception as error:
            row.failed[name] = brief(error)
    right = [name for name, counts in row.counts.items() if counts.differs is None]
    with warnings.catch_warnings(action="ignore"):
        row.seconds.update(_first_calls(subject, right, rounds))
    return row


def _first_calls(subject: Subject, names: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds; counting was the warm-up."""
    return interleave({name: prepared(CONTENDERS[name], subject) for name in names}, rounds=rounds, warmup=0)


# ---- the command
COLUMNS = ("subgraphs", "Dynamo's", "breaks", "Dynamo's", "all inputs", "Dynamo's", "seconds", "Dynamo's", "ratio")


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Rounds of timed first calls.")
@click.option("--group", type=click.Choice(["models", "functions"]), help="Only these.")
@click.option("--only", "names", multiple=True, help="Only this model or function; may be repeated.")
@click.option("--quick", is_flag=True, help=f"One round of {', '.join(QUICK)}.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every figure to this file.")
def main(rounds: int, group: str | None, names: tuple[str, ...], quick: bool, json_file: Path | None) -> None:
    """Compare, count and time, and print a table of the models and one of the functions."""
    torch.set_num_threads(1)
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # it warns of every break
    console = Console()
    if not console.is_terminal:
        console.width = 150
    if quick:
        rounds, names = 1, names or QUICK
    found = groups()
    unknown = set(names) - {subject.name for subjects in found.values() for subject in subjects}
    if unknown:
        raise click.BadParameter(f"there is no {min(unknown)!r}", param_hint="--only")
    results: dict[str, dict[str, Row]] = {}
    for title, subjects in found.items():
        chosen = [subject for subject in subjects if not names or subject.name in names]
        if chosen and group in (None, title):
            results[title] = {}
        for subject in chosen if title in results else ():
            with console.status(f"capturing {subject.name} …"), torch.no_grad():
                results[title][subject.name] = measure(subject, rounds)
            write_json(json_file, _plain(results))
    for title, rows in results.items():
        console.print(_table(f"{title}: {len(rows)}; seconds of the first call, median of {rounds}", rows))
        for line in _notes(rows):
            console.print(line, markup=False, soft_wrap=True)
    console.print(machine())


def _plain(results: Mapping[str, Mapping[str, Row]]) -> dict[str, dict[str, Any]]:
    return {title: {name: asdict(row) for name, row in rows.items()} for title, rows in results.items()}


def _table(title: str, rows: Mapping[str, Row]) -> Table:
    table = Table(title=title)
    table.add_column("what", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for name, row in rows.items():
        table.add_row(name, *_figures(row))
    table.add_section()
    table.add_row("in all", *_totals(rows))
    return table


def _figures(row: Row) -> list[str]:
    cells = [
        str(getattr(row.counts[name], what)) if name in row.counts else "-"
        for what in ("subgraphs", "breaks", "in_all")
        for name in CONTENDERS
    ]
    cells += [f"{median(row.seconds[name]):.3f}" if name in row.seconds else "-" for name in CONTENDERS]
    ratio = f"{median_ratio(row.seconds[OURS], row.seconds[DYNAMO]):.2f}" if len(row.seconds) == 2 else "-"
    return [*cells, ratio]


def _totals(rows: Mapping[str, Row]) -> list[str]:
    """The sums over what both have; the median of the ratios."""
    both = [row for row in rows.values() if len(row.seconds) == 2]
    cells = [
        str(sum(getattr(row.counts[name], what) for row in both))
        for what in ("subgraphs", "breaks", "in_all")
        for name in CONTENDERS
    ]
    cells += [f"{sum(median(row.seconds[name]) for row in both):.3f}" for name in CONTENDERS]
    ratios = [median_ratio(row.seconds[OURS], row.seconds[DYNAMO]) for row in both]
    return [*cells, f"{median(ratios):.2f}" if ratios else "-"]


def _notes(rows: Mapping[str, Row]) -> Iterator[str]:
    for name, row in rows.items():
        for contender, failure in row.failed.items():
            yield f"{name}, {contender}: {failure}"
        for contender, counts in row.counts.items():
            if counts.differs is not None:
                yield f"{name}, {contender} differs from eager, {counts.differs}"
            if counts.told is not None:
                yield f"{name}, {contender}: {counts.told}"


if __name__ == "__main__":
    main()
