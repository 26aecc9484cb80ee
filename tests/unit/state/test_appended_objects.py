"""Objects that some paths put into a list from before the call: what was in it stays the objects that they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.sampling import crossed


@dataclasses.dataclass
class Record:
    x: Any
    n: int = 1


class Plain:
    def __init__(self, x: Any, n: int = 1) -> None:
        self.x, self.n = x, n

    def __repr__(self) -> str:
        return f"Plain({self.x}, {self.n})"


def listed(x: Any, n: int = 1) -> Any:
    return [x * n]


def keyed(x: Any, n: int = 1) -> Any:
    return {"x": x, "n": n}


KEPT: list[Any] = []
MADE: list[Callable[..., Any]] = [Record]


def made(x: Any, n: int = 1) -> Any:
    return MADE[0](x, n)


def in_one_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        KEPT.append(made(x * 2, 3))
    return x


def in_both_arms(x: Tensor) -> Tensor:
    if x.sum() > 0:
        KEPT.append(made(x * 2, 3))
        KEPT.append(made(x))
    else:
        KEPT.append(made(x - 1, 4))
    return x


def in_a_loop(x: Tensor) -> Tensor:
    n = 0
    while x.sum() < 7:
        x = x + 2
        n += 1
        KEPT.append(made(x, n))
    return x


def in_an_arm_of_a_loop(x: Tensor) -> Tensor:
    for i in range(3):
        if x[i] > 0:
            KEPT.append(made(x[i], i))
    return x


def behind_another(x: Tensor) -> Tensor:
    if x[0] > 0:
        KEPT.append(made(x))
    if x[1] > 0:
        KEPT.append(made(x * 2))
    return x


def read_behind(x: Tensor) -> Any:
    if x.sum() > 0:
        KEPT.append(made(x))
    return x, len(KEPT)


def another_is_taken_out(x: Tensor) -> Tensor:
    if x.sum() > 0:
        KEPT.append(made(x))
        KEPT.pop(0)
    return x


def put_at_the_front(x: Tensor) -> Tensor:
    if x.sum() > 0:
        KEPT.insert(0, made(x))
    return x


def emptied(x: Tensor) -> Tensor:
    if x.sum() > 0:
        KEPT.clear()
        KEPT.append(made(x))
    return x


FUNCTIONS = [
    *(in_one_arm, in_both_arms, in_a_loop, in_an_arm_of_a_loop, behind_another, read_behind),
    *(another_is_taken_out, put_at_the_front, emptied),
]
STAYS = (in_one_arm, in_both_arms, in_a_loop, in_an_arm_of_a_loop, behind_another, read_behind)
CALLS = [torch.tensor(v) for v in ([1.0, 2.0, -1.0], [-1.0, -2.0, 1.0], [-1.0, 2.0, 3.0], [1.0, -2.0, 0.0])]


def named(each: Any) -> str:
    return each.__name__


def observed(target: Callable[[Tensor], Any]) -> list[Any]:
    """What the calls give and leave; whether what was in the list is in it, and where; None for a refusal."""
    old = [made(torch.zeros(3), 7), made(torch.ones(3), 8)]
    KEPT[:] = old
    seen: list[Any] = []
    for x in CALLS:
        before = list(KEPT)
        try:
            seen.append(repr(target(x)))
        except sg.CaptureError:
            return [None]
        where = [next((i for i, now in enumerate(KEPT) if now is each), None) for each in before]
        seen += [repr(KEPT), where]
    return seen


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize(("function", "kind"), crossed(FUNCTIONS, [Plain, Record, listed, keyed]), ids=named)
def test_what_was_there_stays(
    function: Callable[[Tensor], Any], kind: Callable[..., Any], full_graph: bool
) -> None:
    MADE[0] = kind
    static = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager", cache_size=32)
    found = observed(static)
    if found == [None]:
        assert full_graph
        assert function not in STAYS
        return
    assert found == observed(function)


def test_objects_that_the_call_makes_before_the_branch_are_refused() -> None:
    def function(x: Tensor) -> Any:
        record = Plain(x)
        kept = []
        if x.sum() > 0:
            kept.append(record)
        return kept, record.x

    with pytest.raises(sg.CaptureError, match="SG306") as raised:
        sg.export(function, (torch.ones(3),))
    assert "Make it in the branch or loop that puts it into the list" in str(raised.value)
