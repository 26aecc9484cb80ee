"""`next` below a staged branch or loop, of generator expressions and of what Python makes there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree, refusal

UP, DOWN = (torch.tensor([1.0, 2.0]),), (torch.tensor([-3.0, 2.0]),)


def in_a_loop(n: Tensor) -> Tensor:
    v, i = torch.zeros(2), torch.tensor(0)
    while i < n:
        found = next(x for x in (v, [i]) if isinstance(x, Tensor))
        other = next((x for x in (v, [i]) if isinstance(x, list)), None)
        v = found + len(other or ())
        i = i + 1
    return v


def grown(n: Tensor) -> Tensor:
    def joined(parts: Any) -> Tensor:
        first = next(x for x in parts if isinstance(x, Tensor))
        return torch.cat([x if isinstance(x, Tensor) else torch.tensor(x, dtype=first.dtype) for x in parts])

    v, i = torch.zeros(2), 0
    while i < n:
        v = joined((v, [i]))
        i += 1
    return v


def in_a_branch(x: Tensor) -> Any:
    w = None
    if x.sum() > 0:
        w = next((t for t in (x, x * 2) if t.dim() == 1), None)
        pairs = next(a + b for a in (x, x + 1) for b in (x, x * 2))
        kept = []
        last = next(kept.append(n) or n for n in (1, 2))  # type: ignore[func-returns-value]  # None, for sure
        x = next(filter(lambda t: t.dim() == 1, (x, x + 1))) + pairs + last
        x = next(map(lambda t: t + 1, (x,)))  # noqa: C417 - it is what is tested
        two = iter([x, x + 1])
        x = next(two) + next(two)
        (n, q), (i, x) = next(zip((1, 2), (x, x))), next(enumerate([x]))
        x = q + n + i
    return x if w is None else x + w


def of_functions(x: Tensor) -> Any:
    def both() -> Any:
        yield x + 1
        yield x + 2

    if x.sum() > 0:
        each = both()
        x = next(each) + next(each) + (1 if next(each, None) is None else 2)
    elif x[0] < -2:
        each = both()
        x = next(each) * each.send(None)
    return x


def of_a_module(x: Tensor, m: nn.Module) -> Any:
    if x.sum() > 0:
        x = x.to(next(m.parameters()).dtype) + next(iter(m.state_dict().values())).sum()
    return m(x)


def cached(x: Tensor) -> Tensor:
    def layer(x: Tensor, cache: Any) -> Any:
        kept, new = iter(cache) if cache is not None else iter([]), []
        for _ in range(2):
            c = next(kept, None)
            x = x + 1 if c is None else x + c
            new.append(x)
        return x, new

    cache = None
    for _ in range(3):
        x, cache = layer(x, cache)
        if (x > 5).all():
            break
    return x


@pytest.mark.parametrize("function", [in_a_loop, grown])
def test_in_a_loop_of_the_run(function: Any) -> None:
    agree(function, torch.tensor(3), torch.tensor(0))


@pytest.mark.parametrize("function", [in_a_branch, of_functions, cached])
def test_in_a_branch_of_the_run(function: Any) -> None:
    agree(function, UP, DOWN, (torch.tensor([7.0, 8.0]),))


def test_of_the_parameters_of_a_module() -> None:
    m = nn.Linear(2, 2)
    static = sg.to_static(lambda x: of_a_module(x, m), backend="eager")
    for (x,) in (UP, DOWN):
        torch.testing.assert_close(static(x), of_a_module(x, m), rtol=0, atol=0)


def test_one_from_before_the_branch_is_refused() -> None:
    def advanced(x: Tensor) -> Any:
        each = (x + n for n in (1, 2))
        if x.sum() > 0:
            x = next(each)
        return x, next(each)

    assert refusal(advanced, *UP).reason.code == "SG305"


def found(x: Tensor) -> Any:
    best = next((v for v in x.tolist() if v > 1), None)
    at = next((i for i, v in enumerate(x) if v > 0), -1)
    return best, at, next(filter(lambda v: v < 0, x.tolist()), 0.5)


def found_or_raised(x: Tensor) -> Any:
    return next(v * 2 for v in x if v > 1)


def found_or_caught(x: Tensor) -> Any:
    try:
        return next(v * 2 for v in x if v > 1)
    except StopIteration:
        return x


def found_in_a_branch(x: Tensor) -> Any:
    if x.sum() > 0:
        return next((v for v in x if v > 1.5), x[0]) + 1
    return x[1]


def found_in_a_loop(x: Tensor) -> Any:
    i = 0
    while i < x.size(0):
        k = next((j for j in range(x.size(0)) if x[j] > i), None)
        if k is None:
            return i
        i = i + k + 1
    return -i


def found_by_a_generator(x: Tensor) -> Any:
    def positive() -> Any:
        for v in x:
            if v > 0:
                yield v

    return next(positive(), None)


def found_among_as_many_as_the_run_says(x: Tensor) -> Any:
    return next((k for k in range(int(x[1])) if k * k > 2), None)


FOUND = [
    *(found, found_or_raised, found_or_caught, found_in_a_branch, found_in_a_loop, found_by_a_generator),
    found_among_as_many_as_the_run_says,
]


@pytest.mark.parametrize("function", FOUND)
def test_where_only_the_run_knows_which_is_the_first(function: Any) -> None:
    agree(function, *UP, *DOWN, torch.tensor([0.0, -1.0]), torch.tensor([3.0, 4.0]))


def test_one_that_a_loop_has_left_is_not_used_again() -> None:
    def again(x: Tensor) -> Any:
        positive = (v for v in x.tolist() if v > 0)
        return next(positive, 0), list(positive)

    assert refusal(again, *UP).reason.code == "SG206"


def test_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt2"
    sg.save(found, path, args=UP)
    loaded = sg.load(path)
    for (x,) in (UP, DOWN):
        assert loaded(x) == found(x)
