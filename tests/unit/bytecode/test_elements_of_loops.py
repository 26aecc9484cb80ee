"""The element that a loop is at is found by several paths behind a break: in what it runs over, on the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from tests.unit.bytecode.segmented import count, to_partial

Log = Callable[[str], None]


class Pair(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def differences(elements: Any, log: Log) -> torch.Tensor:
    for _ in range(2):
        for _, (x, y) in enumerate(elements):
            z = x - y
            log(f"{z.item():f}")
    return z


def fields(elements: Any, log: Log) -> torch.Tensor:
    for _ in range(2):
        for _, each in enumerate(elements):
            z = each.x - each.y
            log(f"{z.item():f}")
    return z


def nested(elements: Any, log: Log) -> torch.Tensor:
    for _ in range(2):
        for _, (((x,), y),) in enumerate(elements):
            z = x - y
            log(f"{z.item():f}")
    return z


def compared(elements: Any, log: Log) -> torch.Tensor:
    one = torch.ones(())
    for _ in range(2):
        for _, each in enumerate(elements):
            z = one * 2 if each is elements[0] else one * 3
            log(f"{z.item():f}")
    return z


def of(kind: Callable[[torch.Tensor, torch.Tensor], Any], offset: int) -> list[Any]:
    return [kind(torch.tensor(float(offset + number)), torch.tensor(0.5)) for number in range(4)]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (differences, lambda x, y: (x, y)),
        (differences, Pair),
        (differences, lambda x, y: [x, y]),
        (fields, Pair),
        (nested, lambda x, y: (((x,), y),)),
        (compared, lambda x, y: (x, y)),
        (compared, lambda x, _: x),
        (compared, lambda x, y: (x, [y])),
    ],
)
def test_each_element_is_its_own(function: Any, kind: Any) -> None:
    static = to_partial(function)
    again = of(kind, 7)
    programs = []
    for number in range(8):
        elements = again if number % 3 == 2 else of(kind, number)
        expected: list[str] = []
        actual: list[str] = []
        wanted, given = function(elements, expected.append), static(elements, actual.append)
        assert actual == expected, f"call {number}"
        assert torch.equal(wanted, given)
        programs.append(count(static))
    assert programs[-1] == programs[3]


def epochs(model: nn.Linear, optimizer: torch.optim.Optimizer, batches: Any, log: Log) -> float:
    for _ in range(2):
        for i, (x, y) in enumerate(batches):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if i % 2 == 0:
                log(f"{loss.item():f}")
    return loss.item()


def test_each_batch_is_trained_on() -> None:
    static = to_partial(epochs)
    for seed in range(6):
        found = []
        for function in (epochs, static):
            torch.manual_seed(seed)
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            seen: list[str] = []
            batches = [(torch.randn(5, 4), torch.randn(5, 1)) for _ in range(3)]
            found.append((function(model, optimizer, batches, seen.append), seen, model.weight.tolist()))
        assert found[0] == found[1], f"seed {seed}"
