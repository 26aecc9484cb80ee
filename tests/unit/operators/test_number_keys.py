"""Dicts and sets by keys that are numbers which only the run knows."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

X = torch.arange(4.0) + 1
CALLS = [(X, torch.tensor([1, 2, 1])), (-X, torch.tensor([0, 0, 3])), (X, torch.tensor([2, 1, 0]))]


def first_ones(x: Tensor, index: Tensor) -> Any:
    seen: set[int] = set()
    kept = []
    for i in index.tolist():
        if i in seen:
            continue
        seen.add(i)
        kept.append(x[i])
    return torch.stack(kept), len(seen), sorted(seen), seen


def counted(x: Tensor, index: Tensor) -> Any:
    plain: dict[int, int] = {}
    counter: Any = collections.Counter()
    default: Any = collections.defaultdict(int)
    for i in index:
        plain[int(i)] = plain.get(int(i), 0) + 1
        counter[int(i)] += 1
        default[i.item()] += 2
    return plain, counter, dict(default), counter[9], sum(plain.values()), max(plain), len(default), bool(plain)


def in_order(x: Tensor, index: Tensor) -> Any:
    last = {}
    total = x[0] * 0
    for k, i in enumerate(index):
        last[int(i)] = x[k] * 2
    for key, value in last.items():
        total = total + key * value
    return total, list(last), list(last.keys()), list(last.values()), last


def taken_out(x: Tensor, index: Tensor) -> Any:
    held = {int(i): k for k, i in enumerate(index)}
    del held[int(index[0])]
    numbers = {0, 1, 2}
    numbers.discard(int(index[1]))
    popped = held.pop(int(index[1]), -5), int(index[0]) in held
    return held, popped, numbers, 1 in numbers, held.setdefault(int(index[2]), 8)


def of_known_keys(x: Tensor, index: Tensor) -> Any:
    table = {0: 10, 1: 20}
    table[int(index[0])] = table.get(int(index[0]), 0) + 5
    table[2] = 7
    return table, {int(index[0]): 1, int(index[1]): 2}, len({int(index[0]), int(index[1])}), set(index.tolist())


def one_key(x: Tensor, index: Tensor) -> Any:
    kinds = {int(index[0]): 1.0}
    kinds[float(index[1])] = 2.0
    kinds[bool(index[0] == 1)] = 3.0
    return kinds, [type(key) for key in [1]], True in kinds


def in_a_loop(x: Tensor, index: Tensor) -> Any:
    seen, i, steps = set(), int(index[0]), 0
    while i not in seen:
        seen.add(i)
        i = (i * 2 + 1) % 5
        steps += 1
    return steps, i, len(seen), seen


def in_arms(x: Tensor, index: Tensor) -> Any:
    held = {}
    if x.sum() > 0:
        held[int(index[0])] = x[0]
    else:
        held[int(index[1])] = x[1]
        held[5] = x[2]
    return held, len(held)


def of_views(x: Tensor, index: Tensor) -> Any:
    held = {"a": 1, "b": 2}
    if x.sum() > 0:
        del held["a"]
    one = {int(index[0]): 1.5}
    parts = list(one), [*one], tuple(one), max(one), len([*one]), dict(one), {**one}
    return set(held.values()), collections.Counter({1: 5})[int(index[0])], parts


def missing(x: Tensor, index: Tensor) -> Any:
    held = {int(index[0]): 1.5}
    return held[int(index[1])]


def missing_and_caught(x: Tensor, index: Tensor) -> Any:
    held = {}
    held[int(index[0])] = 1.5
    try:
        return held[int(index[1])]
    except KeyError:
        return -1.0


EVERY = (
    *(first_ones, counted, in_order, taken_out, of_known_keys, one_key),
    *(in_a_loop, in_arms, of_views, missing, missing_and_caught),
)


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", EVERY)
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for call in CALLS:
        try:
            expected = function(*call)
        except KeyError as error:
            with pytest.raises(KeyError, match=str(error)):
                traced(*call)
        else:
            assert repr(traced(*call)) == repr(expected)


class Memory(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memo: dict[int, Tensor] = {}
        self.met: set[int] = set()

    def forward(self, x: Tensor, index: Tensor) -> Any:
        for i in index:
            if int(i) not in self.memo:
                self.memo[int(i)] = x.sum() * i
            self.met.add(int(i))
        return self.memo[int(index[0])], len(self.met)


def test_what_the_caller_holds() -> None:
    eager, captured = Memory(), Memory()
    static = sg.to_static(captured, backend="eager", full_graph=True)
    for call in CALLS:
        assert repr(static(*call)) == repr(eager(*call))
        assert repr(captured.memo) == repr(eager.memo)
        assert captured.met == eager.met


REFUSED = (
    lambda held, n: held.update({"a": 1}) or held,
    lambda held, n: list(set(held)),
    lambda held, n: held == {1: 2},
)


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_refused(index: int) -> None:
    def function(n: Tensor) -> Any:
        held = {int(n): 2}
        return REFUSED[index](held, n)

    with pytest.raises(sg.CaptureError) as refused:
        sg.to_static(function, backend="eager", full_graph=True)(torch.tensor(1))
    assert refused.value.reason.code == "SG211"


def in_place(s: Any) -> Any:
    s -= {1}
    return s


@pytest.mark.parametrize(
    "operation",
    [
        lambda s: s & {1, 2},
        lambda s: {1, 5} & s,
        lambda s: s - {1},
        lambda s: s | {1},
        lambda s: s ^ s,
        in_place,
    ],
)
def test_operators_of_sets(operation: Any) -> None:
    def function(index: Tensor) -> Any:
        return operation({int(index[0]), int(index[1])})

    static = sg.to_static(function, backend="eager", full_graph=True)
    for index in ([1, 2], [2, 1], [5, 5], [1, 7], [3, 2]):
        assert static(torch.tensor(index)) == function(torch.tensor(index))
    assert len(static.programs) == 1


def test_a_frozenset_is_refused() -> None:
    def function(index: Tensor) -> Any:
        return frozenset({1}) | {int(index[0]), int(index[1])}

    with pytest.raises(sg.CaptureError) as refused:
        sg.to_static(function, backend="eager", full_graph=True)(torch.tensor([1, 2]))
    assert refused.value.reason.code == "SG211"


def test_operators_of_dicts_are_refused() -> None:
    def function(index: Tensor) -> Any:
        return {int(index[0]): 1} | {5: 1}

    with pytest.raises(sg.CaptureError) as refused:
        sg.to_static(function, backend="eager", full_graph=True)(torch.tensor([1, 2]))
    assert refused.value.reason.code == "SG211"


def test_in_a_file(tmp_path: Any) -> None:
    def different(x: Tensor, index: Tensor) -> Any:
        seen = set()
        total = x * 0
        for i in index:
            if int(i) not in seen:
                total = total + x * i
            seen.add(int(i))
        return total

    def looked_up(x: Tensor, index: Tensor) -> Any:
        held = {int(index[0]): x[0], 5: x[1]}
        return held.get(int(index[1]), x[2]) + len(held)

    path = tmp_path / "looked_up.pt2"
    sg.save(looked_up, path, args=CALLS[0])
    loaded = sg.load(path)
    for call in CALLS:
        assert torch.equal(loaded(*call), looked_up(*call))
    for function in (different, lambda x, index: first_ones(x, index)[0]):
        sg.save(function, path, args=CALLS[0])
        loaded = sg.load(path)
        for call in CALLS:
            assert torch.equal(loaded(*call), function(*call))
