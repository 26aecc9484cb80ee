"""Who captures what: the conformance cases through four ways of capturing PyTorch.

``python bench/peers.py [--peer NAME]... [--case NAME]... [--json FILE] [--verbose]``. A case is a function or module
and several inputs that take different paths. The rule is the same for all, and lenient about form: a result may be a
tuple where eager gives a list and a 0-d tensor where it gives a number; any exception will do where eager raises one,
any text where it prints.
"""

from __future__ import annotations

import copy
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.peers``

import stillgraph as sg
from bench._judging import Wrapped, as_module, brief, printed, quiet, same, within
from bench._timing import machine, write_json
from tests.cases.case import Case, all_cases
from tests.cases.harness import Outcome, input_specs, most_programs, observe, program_count

RIGHT, SEVERAL, REFUSED, WRONG = "whole & right", "several programs", "refused", "silently wrong"
VERDICTS = (RIGHT, SEVERAL, REFUSED, WRONG)
SECONDS = 60


class Peer(Protocol):
    """One way of capturing, applied to one case."""

    def target(self, index: int) -> Any:
        """What to call with input `index`."""

    def programs(self) -> int:
        """How many programs were made."""


# ---- the peers
class Stillgraph:
    """A static function on the `eager` backend."""

    def __init__(self, case: Case) -> None:
        self.static = sg.to_static(case.target(), input_spec=input_specs(case), backend="eager")

    def target(self, index: int) -> Any:
        return self.static

    def programs(self) -> int:
        return program_count(self.static)


class Compile:
    """`torch.compile(fullgraph=True)` on the `eager` backend."""

    def __init__(self, case: Case) -> None:
        torch._dynamo.reset()
        self.graphs = 0
        self.compiled = case.target()
        options: dict[str, Any] = {"backend": self._backend, "fullgraph": True}
        if case.input_dims is not None:
            options["dynamic"] = True
        if isinstance(self.compiled, nn.Module):
            self.compiled.compile(**options)
        else:
            self.compiled = torch.compile(self.compiled, **options)

    def _backend(self, graph: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs += 1
        return graph.forward

    def target(self, index: int) -> Any:
        return self.compiled

    def programs(self) -> int:
        return self.graphs


class Export:
    """`torch.export`, anew for every Python argument, dtype and shape that it was not told to expect."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.module = as_module(case.target())
        self.exported: dict[str, nn.Module] = {}

    def target(self, index: int) -> Any:
        args = self.case.inputs[index]
        key = _signature(self.case, args)
        if self.case.toggle_train:
            self.module.train(index == 0)
            key += f" training={index == 0}"
        if key not in self.exported:
            given = copy.deepcopy((args, dict(self.case.kwargs)))
            if self.case.grad:
                given[0][0].requires_grad_()
            program = torch.export.export(self.module, *given, dynamic_shapes=self._dynamic_shapes())
            self.exported[key] = program.module()
        return self.exported[key]

    def _dynamic_shapes(self) -> Any:
        if self.case.input_dims is None:
            return None
        dims = tuple(
            {place: torch.export.Dim.DYNAMIC for place, size in enumerate(shape) if size is None}
            for shape in self.case.input_dims
        )
        return (dims,) if isinstance(self.module, Wrapped) else dims

    def programs(self) -> int:
        return len(self.exported)


class Script:
    """`torch.jit.script`: one program for every shape."""

    def __init__(self, case: Case) -> None:
        self.script = torch.jit.script(case.target())

    def target(self, index: int) -> Any:
        return self.script

    def programs(self) -> int:
        return 1


PEERS: Mapping[str, Callable[[Case], Peer]] = {
    "stillgraph": Stillgraph,
    "torch.compile(fullgraph=True)": Compile,
    "torch.export": Export,
    "torch.jit.script": Script,
}


def _signature(case: Case, args: tuple[Any, ...]) -> str:
    def of(value: Any) -> str:
        if not isinstance(value, Tensor):
            return repr(value)
        return f"{value.dtype}{tuple(value.shape) if case.input_dims is None else value.dim()}"

    leaves, structure = torch.utils._pytree.tree_flatten(args)
    return f"{structure}{[of(leaf) for leaf in leaves]}"


# ---- judging
@dataclass(frozen=True)
class Judgement:
    """What became of a case, and why."""

    verdict: str
    reason: str = ""


def judge(case: Case, make: Callable[[Case], Peer]) -> Judgement:
    """Call eager's target and the peer's with every input in turn; the worst of what happens is the verdict."""
    try:
        with within(SECONDS), quiet():
            peer = make(case)
            judgements = [_judge_input(case, peer, index) for index in range(len(case.inputs))]
            programs, enough = peer.programs(), most_programs(case)
    except Exception as error:  # every refusal counts, whatever its type
        return Judgement(REFUSED, brief(error))
    worst = max(judgements, key=lambda judgement: VERDICTS.index(judgement.verdict))
    if worst.verdict == RIGHT and programs > enough:
        return Judgement(SEVERAL, f"{programs} programs, {enough} are enough")
    return worst


def _judge_input(case: Case, peer: Peer, index: int) -> Judgement:
    expected = _eager_outcome(case, index)
    try:
        target = peer.target(index)
    except Exception as error:  # as above
        return Judgement(REFUSED, brief(error))
    if case.toggle_train and not isinstance(peer, Export):
        target.train(index == 0)
    with printed() as lines:
        actual = observe(replace(case, attrs=()), target, case.inputs[index])
    if expected.error is not None:
        return Judgement(RIGHT) if actual.error is not None else Judgement(WRONG, "eager raises")
    if actual.error is not None:
        return Judgement(REFUSED, brief(actual.error))
    if bool(expected.stdout) != bool(actual.stdout or lines):
        return Judgement(WRONG, f"input {index}: prints {actual.stdout!r}")
    attributes = {name: getattr(target, name, None) for name in case.attrs}
    difference = _difference(expected, actual, attributes)
    return Judgement(RIGHT) if difference is None else Judgement(WRONG, f"input {index}: {difference} differs")


def _eager_outcome(case: Case, index: int) -> Outcome:
    """Eager's outcome for an input after all those before it."""
    target = case.target()
    for place in range(index + 1):
        if case.toggle_train:
            target.train(place == 0)
        outcome = observe(case, target, case.inputs[place])
    return outcome


def _difference(expected: Outcome, actual: Outcome, attributes: dict[str, Any]) -> str | None:
    pairs = {
        "the result": (expected.value, actual.value),
        "an argument": (expected.arguments, actual.arguments),
        "an attribute": (expected.attributes, attributes),
        "a buffer": (expected.state, actual.state),
    }
    gradients = [
        (expected.gradient, actual.gradient),
        *zip(expected.parameter_gradients.values(), actual.parameter_gradients.values(), strict=True),
    ]
    if not all(_same_gradient(left, right) for left, right in gradients):
        return "a gradient"
    return next((what for what, (left, right) in pairs.items() if not same(left, right)), None)


def _same_gradient(expected: Tensor | None, actual: Tensor | None) -> bool:
    """No gradient and a gradient of zeros say the same."""
    if expected is None or actual is None:
        return not any(gradient.any() for gradient in (expected, actual) if gradient is not None)
    return same(expected, actual)


@click.command()
@click.option("--peer", "peers", multiple=True, type=click.Choice(list(PEERS)), help="Only this one; may be repeated.")
@click.option("--case", "wanted", multiple=True, help="Only this case; may be repeated.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every verdict to this file.")
@click.option("--verbose", is_flag=True, help="Print every verdict with its reason.")
def main(peers: tuple[str, ...], wanted: tuple[str, ...], json_file: Path | None, verbose: bool) -> None:
    """Judge every case by every peer and print the counts."""
    console = Console()
    cases = {name: case for name, case in all_cases().items() if not wanted or name in wanted}
    results: dict[str, dict[str, Judgement]] = {}
    for peer in peers or PEERS:
        results[peer] = {}
        for name, case in cases.items():
            with console.status(f"{peer}: {name}"):
                results[peer][name] = judge(case, PEERS[peer])
            if verbose:
                judgement = results[peer][name]
                console.print(f"{peer}  {name}  {judgement.verdict}  {judgement.reason}", markup=False, soft_wrap=True)
    for title, belongs in (("one construct each", _is_grammar), ("algorithms", lambda name: not _is_grammar(name))):
        names = [name for name in cases if belongs(name)]
        console.print(_table(f"{len(names)} cases: {title}", names, results))
    console.print(machine())
    write_json(json_file, {peer: {n: vars(j) for n, j in found.items()} for peer, found in results.items()})


def _is_grammar(name: str) -> bool:
    return re.match(r"[AMSG]\d\d", name) is not None


def _table(title: str, names: list[str], results: Mapping[str, Mapping[str, Judgement]]) -> Table:
    table = Table(title=title)
    table.add_column("", no_wrap=True)
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right")
    for peer, judgements in results.items():
        counts = Counter(judgements[name].verdict for name in names)
        table.add_row(peer, *(str(counts[verdict]) for verdict in VERDICTS))
    return table


if __name__ == "__main__":
    main()
