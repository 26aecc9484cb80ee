"""Where code leads that is called as it is: what it may look at, and what it may change."""

from __future__ import annotations

import collections
import functools
import heapq
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from stillgraph.trace.effects.escapes import Reach, reach_of
from stillgraph.trace.heap.places import ContentsPlace, GlobalPlace


class Trainer:
    kind = "plain"

    def __init__(self) -> None:
        self.steps, self.norms, self.seen, self.other = 0, [1.0], {"a": [2.0]}, [3.0]

    def note(self, gradient: Any) -> None:
        self.steps += 1
        self.norms.append(gradient)

    def read(self, gradient: Any) -> Any:
        return gradient * self.helper()

    def helper(self) -> Any:
        return self.seen["a"][0]

    def any_of(self, name: str) -> Any:
        return getattr(self, name)

    def set_any(self, name: str) -> None:
        setattr(self, name, 1)

    def of_the_class(self) -> None:
        Trainer.kind = "noted"


COUNTS = {"n": 0}
QUEUE: list[int] = []
TOTAL = 0


def counts(gradient: Any) -> None:
    COUNTS["n"] += 1


def queues(gradient: Any) -> None:
    heapq.heappush(QUEUE, 1)


def adds_up(gradient: Any) -> None:
    global TOTAL
    TOTAL += 1


def looks(gradient: Any) -> Any:
    return gradient * COUNTS["n"] * len(QUEUE)


def nonlocal_of() -> Callable[..., None]:
    made = 0

    def hook(gradient: Any) -> None:
        nonlocal made
        made += 1

    return hook


def named(places: Iterable[Any]) -> set[str]:
    """What places are called, globals without their module."""
    return {place.name if isinstance(place, GlobalPlace) else str(place) for place in places}


def places(reach: Reach) -> set[str]:
    return named(reach.places.values())


def changed(reach: Reach) -> set[str]:
    return named(reach.changed())


@pytest.mark.parametrize(
    ("handed", "reached", "changes"),
    [
        (counts, {"COUNTS", "a dict"}, {"a dict"}),
        (queues, {"QUEUE", "a list"}, {"a list"}),
        (adds_up, {"TOTAL"}, {"TOTAL"}),
        (looks, {"COUNTS", "QUEUE", "a dict", "a list"}, set()),
        (nonlocal_of(), {"made"}, {"made"}),
        (Trainer().note, {"Trainer.steps", "Trainer.norms", "a list"}, {"Trainer.steps", "a list"}),
        (Trainer().read, {"Trainer.seen", "a dict", "a list"}, set()),
        (Trainer().of_the_class, {"Trainer.kind"}, {"Trainer.kind"}),
        (functools.partial(Trainer.note, Trainer()), {"Trainer.steps", "Trainer.norms"}, {"Trainer.steps"}),
        (functools.partial(counts), {"COUNTS", "a dict"}, {"a dict"}),
        ([].append, {"a list"}, {"a list"}),
        (collections.deque([[1]]).popleft, {"a deque", "a list"}, {"a deque"}),
        (Trainer().any_of, {"Trainer.other", "Trainer.steps"}, set()),
        (Trainer().set_any, {"Trainer.other", "Trainer.steps"}, {"Trainer.other", "Trainer.steps"}),
    ],
)
def test_what_code_may_look_at_and_change(handed: Any, reached: set[str], changes: set[str]) -> None:
    reach = reach_of([handed])
    assert reached <= places(reach)
    assert changes <= changed(reach)
    if not changes:
        assert not changed(reach)


def test_attributes_that_no_code_names_are_not_reached() -> None:
    assert not {"Trainer.seen", "Trainer.other"} & places(reach_of([Trainer().note]))


def test_all_that_an_optimizer_holds_is_reached() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
    reach = reach_of([optimizer])
    held = [place.target for place in reach.places.values() if isinstance(place, ContentsPlace)]
    assert any(each is optimizer.param_groups[0] for each in held)
    assert not changed(reach)


def test_torchs_own_code_is_not_looked_into() -> None:
    assert not places(reach_of([torch.optim.SGD.step, torch.nn.functional.relu]))
