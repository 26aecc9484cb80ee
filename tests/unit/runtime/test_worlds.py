"""Copies of what a call can reach: they stand where functions look, and every binding is put back."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.runtime.comparing.worlds import NOTHING, World
from tests.unit.runtime import checked

TABLE: dict[str, list[int]] = {"a": [1]}


class Counter:
    total: ClassVar[list[int]] = [0]
    last = 0

    def add(self, value: int) -> None:
        Counter.total[0] += value
        Counter.last = value


def changes_everything(x: Tensor, counter: Counter, seen: list[int] = [0]) -> None:  # noqa: B006 - it is what is tested
    global FRESH
    FRESH = 1
    TABLE["b"] = [2]
    TABLE["a"].append(2)
    checked.HISTORY.append(1.0)
    counter.add(3)
    seen.append(1)
    x.add_(1)


def test_nothing_of_the_users_changes() -> None:
    x, counter, seen = torch.ones(2), Counter(), changes_everything.__defaults__
    before = copy.deepcopy((TABLE, checked.HISTORY, Counter.total, seen))
    world = World(changes_everything, (x, counter), {})
    with world.copied() as copied:
        copied.function(*copied.args)
        found = copied.found()
        name = __name__
        assert found[f"{name}.TABLE"] == {"a": [1, 2], "b": [2]}
        assert found[f"{name}.FRESH"] == 1
        assert found["Counter.total"] == [3]
        assert found["Counter.last"] == 3
        assert copied.args[0].tolist() == [2.0, 2.0]
    assert (TABLE, checked.HISTORY, Counter.total, changes_everything.__defaults__) == before
    assert (Counter.last, x.tolist()) == (0, [1.0, 1.0])
    assert "FRESH" not in globals()
    assert changes_everything.__defaults__ is seen


SEEN: list[float] = []


@torch.library.custom_op("stillgraph_worlds::seen", mutates_args=("x",))
def seen(x: Tensor) -> None:
    SEEN.append(float(x.sum()))
    x.add_(1)


@seen.register_fake
def _fake_of_seen(x: Tensor) -> None:
    pass


OVERLOAD, PACKET = torch.ops.stillgraph_worlds.seen.default, torch.ops.stillgraph_worlds.seen
BY_NAME = {"seen": [seen, OVERLOAD, PACKET]}


def test_operators_stand_for_themselves_and_what_they_change_is_put_back() -> None:
    def calls_operators(x: Tensor) -> Tensor:
        for each in (seen, OVERLOAD, PACKET):
            each(x)
        BY_NAME["seen"][0](x)
        return x * 2

    x = torch.zeros(2)
    with World(calls_operators, (x,), {}).copied() as copied:
        assert copied.function(*copied.args).tolist() == [8, 8]
        assert copied.found()[f"{__name__}.SEEN"] == [0, 2, 4, 6]
    assert (SEEN, x.tolist()) == ([], [0, 0])
    static = sg.to_static(calls_operators, backend="eager", check=1)
    assert (static(x).tolist(), SEEN) == ([8, 8], [0, 2, 4, 6])


def test_a_binding_that_goes_is_put_back() -> None:
    def forgets() -> None:
        global TABLE
        del TABLE

    before = TABLE
    with World(forgets, (), {}).copied() as copied:
        copied.function()
        assert copied.found()[f"{__name__}.TABLE"] is NOTHING
    assert TABLE is before


def test_copies_share_what_the_originals_share_and_have_a_history_of_their_own() -> None:
    base = torch.zeros(4)
    hidden = torch.ones(2, requires_grad=True) * 2
    with World(len, (base, base[:2], [base], hidden), {}).copied() as copied:
        whole, part, listed, traced = copied.args
        whole.fill_(5)
        assert listed[0] is whole
        assert part.tolist() == [5.0, 5.0]
        traced.mul_(3).sum().backward()
    assert base.tolist() == [0.0] * 4
    assert hidden.tolist() == [2.0, 2.0]


def test_an_error_inside_puts_everything_back() -> None:
    def fails() -> Any:
        TABLE.clear()
        raise RuntimeError

    try:
        with World(fails, (), {}).copied() as copied:
            copied.function()
    except RuntimeError:
        pass
    assert TABLE == {"a": [1]}
