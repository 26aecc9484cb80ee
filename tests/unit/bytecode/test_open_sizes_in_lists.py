"""Sizes of tensors in lists, tuples and dicts that differ from call to call: they are open after two programs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.unit.bytecode.segmented import Args, captured


def _ragged(*sizes: int, requires_grad: bool = False) -> list[torch.Tensor]:
    made = [torch.arange(3.0 * size).reshape(size, 3) + position for position, size in enumerate(sizes)]
    return [each.requires_grad_(requires_grad) for each in made]


def _calls(count: int, low: int = 2, of: int = 4) -> list[Args]:
    chance = random.Random(3)
    return [(_ragged(*(chance.randint(low, 9) for _ in range(of))),) for _ in range(count)]


def padded(batch: list[Any]) -> Any:
    longest = max(each.shape[0] for each in batch)
    return torch.stack([F.pad(each, (0, 0, 0, longest - each.shape[0])) for each in batch])


def padded_in_steps(batch: list[Any]) -> Any:
    longest = max(each.shape[0] for each in batch)
    print("a")
    return torch.stack([F.pad(each, (0, 0, 0, longest - each.shape[0])) for each in batch])


def filled(batch: list[Any]) -> Any:
    print("a")
    sizes = [each.shape[0] for each in batch]
    made = torch.zeros(len(batch), max(sizes), 3)
    for position, each in enumerate(batch):
        made[position, : sizes[position]] = each
    return made, torch.tensor(sizes), sizes


def handed_back(batch: list[Any]) -> Any:
    print("a")
    total = torch.cat(batch).sum()
    print("b")
    batch.append(batch[0] * total)
    return batch, batch[0] is batch[1], len(batch)


def with_two_names(batch: list[Any]) -> Any:
    other = batch
    print("a")
    other[0] = batch[1] * batch[1].shape[0]
    return batch, other is batch, torch.cat(other)


def written(batch: list[Any]) -> Any:
    print("a")
    batch[0].add_(batch[1].shape[0])
    batch[1][:2] = 5
    return batch[0] * batch[2].shape[0]


def one_size(batch: list[Any]) -> Any:
    print("a")
    try:
        return batch[0] + batch[1]
    except RuntimeError:
        return batch[0].shape[0]


def decided_by_it(batch: list[Any]) -> Any:
    print("a")
    return [each * 2 if each.shape[0] % 2 else each.sum() for each in batch]


def learned(batch: list[Any]) -> Any:
    print("a")
    leaves = [each.clone().requires_grad_() for each in batch]
    torch.cat([each * len(each) for each in leaves]).mean().backward()
    return [each.grad for each in leaves]


def in_a_dict(batch: list[Any]) -> Any:
    named = {"a": batch[0], "b": (batch[1], batch[2])}
    print("a")
    return named["a"].sum() * named["b"][0].shape[0], named["b"][1] + named["a"].shape[0]


FUNCTIONS = {
    padded: 3,
    padded_in_steps: 10,
    filled: 6,
    handed_back: 17,
    with_two_names: 6,
    written: 6,
    one_size: 10,
    decided_by_it: 6,
    learned: 6,
    in_a_dict: 9,
}
"""Functions, and at most how many programs they take for twenty calls."""

SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in FUNCTIONS if each not in (padded, handed_back)]


@pytest.mark.parametrize("function", [padded, handed_back, *SLOW], ids=lambda function: function.__name__)
def test_sizes_of_elements(function: Callable[..., Any]) -> None:
    static, made = captured(lambda: function, _calls(20))
    assert made[-1] <= FUNCTIONS[function], made
    assert made[-1] == made[9], made
    assert static.plan.gave_up is None


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_calls_that_differ_in_more(function: Callable[..., Any]) -> None:
    """One tensor twice, sizes that are special to torch, other dtypes, layouts, lengths, and gradients."""
    twice, transposed = _ragged(4, 5, 6, 7), _ragged(4, 5, 6, 7)
    twice[1] = twice[0]
    transposed[0] = torch.arange(15.0).reshape(3, 5).t()
    others: list[Args] = [
        (twice,),
        (transposed,),
        (_ragged(1, 4, 0, 3),),
        (_ragged(6, 1, 1, 5),),
        ([each.double() for each in _ragged(4, 6, 5, 3)],),
        (_ragged(3, 4, 5),),
        (_ragged(8, 4, 5, 2, 6),),
        ([*_ragged(4, 5, 3), torch.arange(12.0).reshape(2, 2, 3)],),
    ]
    captured(lambda: function, [*_calls(4), *others, *_calls(2), *others])


def test_a_tensor_that_is_in_the_list_twice() -> None:
    twice = _ragged(4, 5, 6, 7)
    twice[1] = twice[0]
    captured(lambda: written, [*_calls(4), (twice,), *_calls(1), (twice,)])


@pytest.mark.slow
def test_gradients_of_elements() -> None:
    calls = [(_ragged(*sizes, requires_grad=True),) for sizes in ((3, 4), (5, 2), (6, 7), (4, 4), (9, 3))]
    _, made = captured(lambda: padded_in_steps, calls)
    assert made[-1] == made[3], made


@pytest.mark.slow
def test_lists_of_many_lengths_are_pythons() -> None:
    calls = [(_ragged(*range(2, 4 + number)),) for number in range(12)]
    static, made = captured(lambda: filled, [*calls, *calls, *calls])
    assert made[-1] == made[2 * len(calls) - 1], made
    assert static.plan.gave_up is None
