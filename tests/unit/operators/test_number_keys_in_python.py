"""What Python itself does with dicts and sets by numbers of the run: eager's answer, or a refusal with the line."""

from __future__ import annotations

import collections
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import refusal

GIVEN = [torch.tensor(values) for values in ([1, 2], [1, 1], [2, 1], [4, 0])]


def s(x: Tensor) -> set[int]:
    return {int(x[0]), int(x[1])}


def d(x: Tensor) -> dict[int, int]:
    return {int(x[0]): 1, int(x[1]): 2}


def _texts(x: Tensor) -> list[set[str]]:
    named = set("a" if v > 1 else "b" for v in x)  # noqa: C401 - a generator
    named.update("c" if v > 3 else "b" for v in x)
    return [named, {"a" if v > 1 else "b" for v in x}, set(["a" if v > 1 else "b" for v in x])]  # noqa: C403


def grows(x: Tensor) -> Any:
    held = d(x)
    views = held.keys(), held.values(), held.items()
    held[int(x[0]) + 5] = 7
    return [list(view) for view in views]


def twice(x: Tensor) -> Any:
    pairs = d(x).items()
    return list(pairs), [key + value for key, value in pairs], len(pairs), isinstance(pairs, zip)


ANSWERED: dict[str, Callable[[Tensor], Any]] = {
    "a view shows what the dict holds now": grows,
    "a view is no iterator": twice,
    "{**d, 3: 1}": lambda x: {**d(x), 3: 1},
    "sorted(s)": lambda x: sorted(s(x)),
    "len": lambda x: (len(s(x)), bool(s(x)), len(d(x))),
    "items": lambda x: (list(d(x).items()), list(d(x)), list(d(x).values()), list(reversed(d(x)))),
    "setdefault": lambda x: d(x).setdefault(3, 7),
    "pop": lambda x: d(x).pop(1, None),
    "copy": lambda x: (d(x).copy(), s(x).copy(), dict(d(x))),
    "set": lambda x: (set(s(x)), set(d(x))),
    "dict of pairs": lambda x: (dict([(int(v), 1) for v in x[:2]]), dict(zip(x.tolist(), "ab"))),  # noqa: C404
    "dict of rows": lambda x: dict((int(v), 1) for v in x if v > 1),  # noqa: C402
    "set of rows": lambda x: (set(int(v) for v in x if v > 1), set(map(int, x))),  # noqa: C401
    "set of texts": lambda x: [[len(t), "a" in t, "b" in t] for t in _texts(x)],
    "tensor": lambda x: torch.tensor(sorted(s(x))),
    "popitem": lambda x: d(x).popitem(),
    "Counter": lambda x: collections.Counter(d(x)),
    "s == {1}": lambda x: s(x) == {1},
    "s <= t": lambda x: s(x) <= {1, 2, 3},
    "t & s": lambda x: {1} & s(x),
    "added - t": lambda x: len(added(x) - {1}),
    "added & t": lambda x: 1 in (added(x) & {1, 2}),
    "t ^ added": lambda x: len({1, 2} ^ added(x)),
    "{*s, 3}": lambda x: {*s(x), 3},
    "t.intersection(s)": lambda x: {1}.intersection(s(x)),
    "t.issubset(s)": lambda x: {1}.issubset(s(x)),
}


def added(x: Tensor) -> set[int]:
    found: set[int] = set()
    found.add(int(x[0]))
    return found


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "d.keys() & {1}": lambda x: d(x).keys() & {1},
    "{1} - d.keys()": lambda x: {1} - d(x).keys(),
    "d.items() | {(1, 1)}": lambda x: d(x).items() | {(1, 1)},
    "{1} >= d.keys()": lambda x: d(x).keys() <= {1} or {1} >= d(x).keys(),
    "d.items() == {(1, 1)}": lambda x: d(x).items() == {(1, 1)},
    "d.keys().isdisjoint": lambda x: d(x).keys().isdisjoint({1}),
    "s.union": lambda x: s(x).union([3]),
    "{3: 1, **d}": lambda x: len({3: 1, **d(x)}),
    "dict(d, a=1)": lambda x: len(dict(d(x), a=1)),
    "dict(pairs, a=1)": lambda x: dict([(int(x[0]), 1), (int(x[1]), 2)], a=3),
    "d | e": lambda x: d(x) | {3: 1},
    "d == e": lambda x: d(x) == {1: 1, 2: 2},
    "d.keys() == t": lambda x: d(x).keys() == {1, 2},
    "max(s)": lambda x: max(s(x)),
    "list(s)": lambda x: list(s(x)),
    "fromkeys": lambda x: dict.fromkeys(x.tolist(), 0),
    "pickle": lambda x: pickle.dumps(d(x)),
    "json": lambda x: json.dumps(d(x)),
    "f-string": lambda x: f"{d(x)}",
    "str": lambda x: str(s(x)),
    "in a list": lambda x: s(x) in [{1}, {1, 2}],
    "frozenset": lambda x: frozenset(map(int, x)),
    "hash": lambda x: hash(frozenset(s(x))),
}


@pytest.mark.parametrize("function", ANSWERED.values(), ids=ANSWERED)
def test_it_is_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in GIVEN:
        expected, found = function(x), static(x)
        assert repr(expected) == repr(found)
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_the_users_line(function: Callable[[Tensor], Any]) -> None:
    error = refusal(function, GIVEN[0])
    assert error.reason.code in ("SG211", "SG301")
    assert error.location is not None
    assert error.location.file == __file__


NAN = float("nan")


@pytest.mark.parametrize(
    "ask",
    [
        lambda v: [NAN, 2.0].index(v) if v != 3 else None,
        lambda v: (NAN, v).count(v),
        lambda v: [NAN] == [v],  # noqa: SIM300 - a list on the left
        lambda v: (len({v, v}), v in {v}),
    ],
)
def test_nan_is_told_by_identity(ask: Callable[[float], Any]) -> None:
    def function(x: Tensor, v: float) -> Any:
        try:
            return x + 1, ask(v)
        except ValueError:
            return x, 7

    static, x = sg.to_static(function, backend="eager"), torch.ones(())
    for value in (2.0, 4.0, NAN, float("nan"), 5.0, NAN):
        assert static(x, value) == function(x, value)


def test_nan_of_the_run_is_one_key_under_one_name() -> None:
    def function(x: Tensor) -> Any:
        v = x.sum().item()
        held = {v}
        held.add(v)
        return v in held, len(held), [NAN].count(v)

    static = sg.to_static(function, backend="eager", full_graph=True)
    for value in (1.0, NAN):
        assert static(torch.tensor([value])) == function(torch.tensor([value]))
