"""The measurements measure what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

pytest.importorskip("transformers")

from bench import _timing, overhead, peers, training
from tests.cases.case import all_cases
from tests.cases.compare import assert_same, tensors_in


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
