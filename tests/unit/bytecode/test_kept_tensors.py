"""Tensors that a container keeps as well: a program depends on that where its code comes to them in both places."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.cases.compare import assert_same
from tests.unit.bytecode.segmented import held, to_partial

CALLS = [(torch.arange(3.0) + number,) for number in range(34)]


# ---- containers that grow, and are merely moved behind their last use
class Agent:
    def __init__(self) -> None:
        self.kept: list[Tensor] = []
        self.hidden = torch.zeros(3)

    def step(self, x: Tensor) -> Any:
        self.hidden = (self.hidden + x).tanh()
        self.kept.append(self.hidden)
        print(len(self.kept))
        return self.hidden * 2


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.kept: list[Tensor] = []

    def forward(self, x: Tensor) -> Any:
        out = x * self.scale
        self.kept.append(out.detach())
        print(len(self.kept))
        return out + self.kept[-1]


def result(kept: list[Tensor], x: Tensor) -> Any:
    out = x * 2
    kept.append(out)
    print(len(kept))
    return out


def argument(kept: list[Tensor], x: Tensor) -> Any:
    kept.append(x)
    print(len(kept))
    return x * 2


def entry(kept: dict[int, Tensor], x: Tensor) -> Any:
    out = x * 2
    kept[len(kept)] = out
    print(len(kept))
    return out


def settles(target: Callable[..., Any], *before: Any) -> None:
    """Many calls make few programs, and give what eager gives."""
    static, few = to_partial(target), 0
    for number, (x,) in enumerate(CALLS):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            static(*before, x)
        assert printed.getvalue() == f"{number + 1}\n"
        few = held(static).cache_info().misses if number == 25 else few
    assert held(static).plan.gave_up is None
    assert held(static).cache_info().misses == few


@pytest.mark.parametrize(("target", "kind"), [(result, list), (argument, list), (entry, dict)])
def test_what_a_growing_container_keeps(target: Callable[..., Any], kind: type) -> None:
    kept = kind()
    settles(target, kept)
    values = [*kept.values()] if kind is dict else kept
    wanted = [x if target is argument else x * 2 for (x,) in CALLS]
    assert_same(wanted, values)


def test_what_an_object_keeps_in_a_growing_list() -> None:
    agent, eager = Agent(), Agent()
    settles(Agent.step, agent)
    with contextlib.redirect_stdout(io.StringIO()):
        for (x,) in CALLS:
            eager.step(x)
    assert_same(eager.kept, agent.kept)
    assert agent.hidden is agent.kept[-1]


def test_what_a_module_keeps_in_a_growing_list() -> None:
    layer = Layer()
    settles(layer.__class__.forward, layer)
    assert_same([x * 1 for (x,) in CALLS], layer.kept)


# ---- elements of two tuples that are one tensor, others in each call
def stacked(batch: Any) -> Any:
    first, second = zip(*batch)
    print(len(batch))
    return torch.stack(first).sum() - torch.stack(second).prod()


def written(batch: Any) -> Any:
    first, second = zip(*batch)
    print(len(batch))
    for each in first:
        each.add_(1)
    return torch.stack(second).sum()


def transitions(function: Callable[..., Any]) -> list[Any]:
    """What calls give of a replay buffer, where the end of one step is the beginning of the next."""
    chance = random.Random(3)
    states = [torch.arange(3.0) + number for number in range(41)]
    found = []
    for _ in range(40):
        batch = [(states[number], states[number + 1]) for number in chance.sample(range(40), 16)]
        with contextlib.redirect_stdout(io.StringIO()):
            found.append(function(batch))
    return [*found, states]


@pytest.mark.parametrize("function", [stacked, written])
def test_steps_of_a_replay_buffer(function: Callable[..., Any]) -> None:
    static = to_partial(function)
    assert_same(transitions(function), transitions(static))
    assert static.plan.gave_up is None


# ---- where it matters, and differs from call to call
def written_in_the_first_place(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    kept.append(x)
    print(len(kept))
    x.add_(1)
    return kept[-1] * 2 + y


def written_in_another_place(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    kept.append(x)
    print(len(kept))
    y.add_(1)
    return x * 2, kept[0] + 1


def asked_to_be_one(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    kept.append(x)
    print(len(kept))
    return kept[0] is y, x is y, x * 2


def asked_to_be_in_it(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    kept.append(x)
    print(len(kept))
    found = any(each is y for each in kept)
    y.mul_(2)
    return found, x + y


def asked_in_a_comprehension(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    kept.append(x)
    print(len(kept))
    kept.append(y)
    return [each is x for each in kept][-3:], kept.index(kept[0])


KEPT: list[Tensor] = []


def kept_in_a_global(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    KEPT.append(x)
    print(len(KEPT))
    y.add_(1)
    return x + KEPT[0]


def under_a_computed_name(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    agent = Agent()
    setattr(agent, "k" + "1", y)
    print(len(agent.kept))
    x.add_(1)
    return getattr(agent, "k" + "1") + x


def among_all_attributes(kept: list[Tensor], x: Tensor, y: Tensor) -> Any:
    agent = Agent()
    agent.other = y  # type: ignore[attr-defined]  # an attribute that the class does not declare
    print(len(agent.kept))
    x.add_(1)
    (found,) = [value for name, value in vars(agent).items() if name == "other"]
    return found + x


def made(function: Callable[..., Any]) -> list[Any]:
    """What calls give and leave, in which the last argument is the second one, an older one, or another."""
    kept: list[Tensor] = []
    KEPT.clear()
    found: list[Any] = []
    before = torch.ones(3)
    for number in range(27):
        x = torch.arange(3.0) + number
        y = (x, before, x + 1)[number % 3]
        with contextlib.redirect_stdout(io.StringIO()):
            given = function(kept, x, y)
        found.append(torch.utils._pytree.tree_map_only(Tensor, Tensor.clone, (given, x, y)))
        before = x
    return found


@pytest.mark.parametrize(
    "function",
    [
        *(written_in_the_first_place, written_in_another_place, asked_to_be_one, asked_to_be_in_it),
        *(asked_in_a_comprehension, kept_in_a_global, under_a_computed_name, among_all_attributes),
    ],
)
def test_one_tensor_or_two(function: Callable[..., Any]) -> None:
    assert_same(made(function), made(to_partial(function)))


def joined(rows: Any) -> Any:
    found = [torch.tensor(row) for row in rows]
    print(len(found))
    return torch.cat(found).float().mean()


def test_elements_of_other_sizes_in_each_call() -> None:
    chance = random.Random(3)
    static = to_partial(joined)
    for _ in range(30):
        rows = [[*range(chance.randrange(2, 12))] for _ in range(3)]
        with contextlib.redirect_stdout(io.StringIO()):
            assert_same(joined(rows), static(rows))
    assert static.plan.gave_up is None
