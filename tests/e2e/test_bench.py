"""The measurements measure what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor

pytest.importorskip("transformers")

from bench import _timing, bert, breaks, deploy, exporters, overhead, peers, training
from bench.models import MODELS
from tests.cases.case import Case, all_cases
from tests.cases.compare import assert_same, tensors_in


@pytest.mark.slow
def test_contenders_take_turns_and_the_warm_up_is_left_out() -> None:
    order: list[str] = []

    def contender(name: str) -> Callable[[], Callable[[], object]]:
        return lambda: lambda: order.append(name)

    seconds = _timing.interleave({name: contender(name) for name in "abc"}, rounds=2, warmup=1)
    assert "".join(order) == "abcbcacab"
    assert {name: len(samples) for name, samples in seconds.items()} == {"a": 2, "b": 2, "c": 2}


def test_a_difference_is_taken_round_by_round() -> None:
    assert _timing.median_difference([11.0, 102.0, 13.0], [10.0, 100.0, 10.0]) == 2.0


@pytest.mark.parametrize(
    ("peer", "verdict"),
    [
        ("stillgraph", peers.RIGHT),
        ("torch.compile(fullgraph=True)", peers.REFUSED),
        ("torch.export", peers.REFUSED),
        ("torch.jit.script", peers.RIGHT),
    ],
)
def test_a_branch_on_data_is_judged(peer: str, verdict: str) -> None:
    assert peers.judge(all_cases()["A01_if_tensor"], peers.PEERS[peer]).verdict == verdict


@pytest.mark.parametrize("peer", ["torch.export"])
def test_a_lost_print_is_silently_wrong(peer: str) -> None:
    assert peers.judge(all_cases()["A24_print"], peers.PEERS[peer]).verdict == peers.WRONG


@pytest.mark.parametrize("contender", list(overhead.CONTENDERS))
@pytest.mark.parametrize("name", ["1 operator", "dict in, dict out", "1 linear layer"])
def test_the_bare_graph_does_what_the_call_does(contender: str, name: str) -> None:
    subject = next(subject for subject in overhead.subjects() if subject.name == name)
    torch.manual_seed(0)
    expected = subject.make()(*subject.args)
    torch.manual_seed(0)
    call, bare = overhead.CONTENDERS[contender](subject)
    assert_same(expected, call())
    shapes = [tensor.shape for tensor in tensors_in(expected)]
    assert [tensor.shape for tensor in tensors_in(bare())] == shapes


@pytest.mark.slow
@pytest.mark.parametrize("name", list(training.SUBJECTS))
def test_contenders_train_the_same_model_on_the_same_batches(name: str) -> None:
    subject = training.SUBJECTS[name]("tiny")
    wraps = {contender: training.CONTENDERS[contender] for contender in ("eager", "stillgraph (eager)")}
    steps = {contender: training.trainer(subject, wrap) for contender, wrap in wraps.items()}
    losses = {contender: [step(number) for number in range(3)] for contender, step in steps.items()}
    assert losses["eager"] == losses["stillgraph (eager)"]
    assert len(set(losses["eager"])) == 3, "nothing is learnt, or every batch is the same"
    readings = training.memory(subject, "eager", warmup=1, steps=4)
    assert len(readings) == 5


def test_bert_is_trained_alike_by_all_contenders() -> None:
    trainers = [bert.trainer(name, width=16, layers=1, count=2, length=8) for name in bert.CALLS]
    first, *others = [[step(number) for number in range(3)] for step in trainers]
    assert others == [first, first]
    assert len(set(first)) == 3, "nothing is learnt, or every batch is the same"


# ---- breaks
@pytest.fixture(scope="module")
def subjects() -> dict[str, breaks.Subject]:
    return {subject.name: subject for group in breaks.groups().values() for subject in group}


@pytest.mark.slow
def test_breaks_are_counted_and_first_calls_timed(tmp_path: Path) -> None:
    file = tmp_path / "breaks.json"
    found = CliRunner().invoke(breaks.main, ["--quick", "--json", str(file)])
    assert found.exit_code == 0, found.output
    for word in ("subgraphs", "breaks", "all inputs", "seconds", "Dynamo's", "ratio", *breaks.QUICK):
        assert word in found.output
    results = json.loads(file.read_text())["results"]
    rows = {name: row for group in results.values() for name, row in group.items()}
    assert list(rows) == list(breaks.QUICK)
    for row in rows.values():
        assert row["failed"] == {}
        assert {name: counts["differs"] for name, counts in row["counts"].items()} == dict.fromkeys(breaks.CONTENDERS)
        assert {name: len(samples) for name, samples in row["seconds"].items()} == {"symbolic_trace": 1, "Dynamo": 1}
    counts = [row["counts"]["symbolic_trace"] for row in rows.values()]
    assert [(each["subgraphs"], each["breaks"], each["in_all"]) for each in counts] == [(1, 0, 1), (1, 0, 1), (2, 1, 2)]


def test_what_gives_another_result_is_told(subjects: dict[str, breaks.Subject]) -> None:
    subject = subjects["print the mean"]
    assert breaks.difference(subject, subject.target()) is None
    assert breaks.difference(subject, lambda x: x) == "input 0: it prints ''"
    assert breaks.difference(subjects["clip by norm"], lambda x: x + 1).startswith("input 0: tensor(")


def test_each_target_is_a_fresh_one(subjects: dict[str, breaks.Subject]) -> None:
    for subject in (subjects["clip by norm"], subjects["early exit"]):
        assert subject.target() is not subject.target()


def test_twenty_models_and_a_dozen_functions_are_captured() -> None:
    sizes = {name: len(group) for name, group in breaks.groups().items()}
    assert sizes["models"] == 20
    assert sizes["functions"] >= 12


# ---- exporters
def doubled(x: Tensor) -> Tensor:
    return x * 2


def branching(x: Tensor) -> Tensor:
    return x + 1 if x.sum() > 0 else x - 1


def first_rows(x: Tensor) -> Tensor:
    return x[:2] * x.shape[0] if x.shape[0] > 3 else x


def whole(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x


@pytest.mark.parametrize(
    ("exporter", "function", "verdict"),
    [
        ("torch.export", doubled, exporters.RIGHT),
        ("torch.export", branching, exporters.REFUSED),
        ("torch.export", first_rows, exporters.AT_RUN),
        ("torch.jit.script", branching, exporters.RIGHT),
        ("torch.jit.trace", doubled, exporters.RIGHT),
        ("torch.jit.trace", branching, exporters.WRONG),
        ("torch.jit.trace", whole, exporters.WRONG),
        ("stillgraph .pt2", branching, exporters.RIGHT),
        ("stillgraph .pt2", whole, exporters.RIGHT),
    ],
)
def test_what_is_exported_is_judged(exporter: str, function: Callable[[Tensor], Tensor], verdict: str) -> None:
    inputs = [(torch.ones(5, 2),), (-torch.ones(5, 2),)]
    if function is first_rows:
        inputs.append((torch.ones(2, 2),))
    case = Case(function.__name__, lambda: function, inputs)
    assert exporters.judge(case, exporters.EXPORTERS[exporter]).verdict == verdict


def test_a_file_is_made_for_each_kind_of_input() -> None:
    case = Case("doubled", lambda: doubled, [(torch.ones(2),), (torch.ones(2, 2),), (torch.ones(3),)])
    asked: list[tuple[list[int], list[list[int | None]]]] = []

    def export(request: exporters.Request, folder: Path) -> Callable[..., object]:
        asked.append((list(request.args[0].shape), request.sizes and [sizes.dims for sizes in request.sizes]))
        return doubled

    assert exporters.judge(case, export).verdict == exporters.RIGHT
    assert asked == [([2], [[None]]), ([2, 2], None)]


def test_loops_are_timed_from_files_that_give_the_result(tmp_path: Path) -> None:
    loop = next(case for case in MODELS if case.name == "scalar loop")
    made, refused = deploy.calls(loop, tmp_path, (".pt2, torch alone", ".pt2, sg.load"))
    assert list(made) == ["eager", ".pt2, torch alone", ".pt2, sg.load"]
    assert refused == {}
    assert set(deploy.LOOPS) <= {case.name for case in MODELS}
