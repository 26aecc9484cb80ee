"""What runs over an iterable takes each element before it draws the next, as Python does."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

UP, DOWN = (torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, 2.0]),)


class Listed(list[Any]):
    """A list of the user's."""


class Noting:
    """Something that is added to, and notes what."""

    def __init__(self, notes: list[Any]) -> None:
        self.notes = notes

    def __add__(self, other: Any) -> Noting:
        self.notes.append(-other)
        return self


def noted(notes: list[Any], number: int) -> int:
    notes.append(("drawn", number))
    return number


def drawn(notes: list[Any], count: int = 3) -> Iterator[int]:
    for number in range(count):
        yield noted(notes, number)


def lengths(values: Any) -> Iterator[int]:
    for _ in range(3):
        yield len(values)


def writing(values: Any) -> Iterator[int]:
    for _ in range(3):
        values.append(7)
        yield len(values)


def nested(values: Any) -> Iterator[int]:
    yield len(values)
    yield from lengths(values)
    yield len(values)


EXTENDED: list[Callable[[Any], Any]] = [
    lambda y: (y[-1] * 2 for _ in range(3)),
    lambda y: (y[-1] * 2 for _ in range(3) if len(y) < 3),
    lambda y: map(lambda _: y[-1] * 2, range(3)),  # noqa: C417 - it is what is tested
    lambda y: map(lambda a, b: y[-1] * 2 + b, range(3), (len(y) for _ in range(3))),
    lambda y: filter(lambda _: len(y) < 3, (1, 2, 3)),
    lambda y: enumerate(len(y) for _ in range(3)),
    lambda y: zip((len(y) for _ in range(3)), range(3)),
    lambda y: zip(range(3), (len(y) for _ in range(2)), strict=False),
    lambda y: (len(y) + k for _ in range(2) for k in range(2)),
    lambda y: lengths(y),
    lambda y: writing(y),
    lambda y: nested(y),
    lambda y: (v for v in lengths(y)),
    lambda y: itertools.islice((len(y) for _ in range(9)), 3),
    lambda y: itertools.chain((len(y) for _ in range(2)), [5]),
    lambda y: (v for v in y if len(y) < 4),
    lambda y: (y.pop() for _ in range(1)),
    lambda y: [len(y) for _ in range(3)],
    lambda y: y,
]


def grown(x: Tensor, elements: Callable[[Any], Any]) -> Any:
    y = [x]
    y.extend(elements(y))
    z = [x]
    z += elements(z)
    bound = [x].extend
    bound(elements(bound.__self__))
    kept = Listed([x])
    kept.extend(elements(kept))
    return y, z, bound.__self__, list(kept)


@pytest.mark.parametrize("elements", EXTENDED, ids=range(len(EXTENDED)))
def test_extend_draws_what_reads_and_writes_the_list(elements: Callable[[Any], Any]) -> None:
    agree(functools.partial(grown, elements=elements), (torch.tensor(1.0),))


@pytest.mark.parametrize("index", [0, 5, 9])
def test_without_a_full_graph_too(index: int) -> None:
    x = torch.tensor(1.0)
    traced = sg.symbolic_trace(functools.partial(grown, elements=EXTENDED[index]))
    assert repr(traced(x)) == repr(grown(x, EXTENDED[index]))


def unbound(x: Tensor) -> Any:
    y, z, w = [x], [x], [x]
    list.extend(y, (y[-1] * 2 for _ in range(3)))
    operator.iadd(z, (z[-1] * 2 for _ in range(3)))
    w.__iadd__(w[-1] * 2 for _ in range(3))
    return y, z, w


def filled_again(x: Tensor) -> Any:
    y = [x]
    y.__init__(len(y) for _ in range(3))  # type: ignore[misc]  # which Python allows
    return y


def sliced(x: Tensor) -> Any:
    y, z = [x], [1, 2, 3, 4]
    y[len(y) :] = (y[-1] * 2 for _ in range(3))
    y[0:1] = (len(y) for _ in range(2))
    z[::2] = (len(z) for _ in range(2))
    return y, z


def of_deques(x: Tensor) -> Any:
    y, z, w, v = (collections.deque([x], most) for most in (None, 2, None, None))
    y.extend(y[-1] * 2 for _ in range(3))
    z.extend(z[-1] * 2 for _ in range(3))
    w.extendleft(w[0] * 2 for _ in range(3))
    v += (v[-1] * 2 for _ in range(3))
    return list(y), list(z), list(w), list(v)


def of_dicts(x: Tensor) -> Any:
    d, e, f, g = {0: x}, {0: x}, collections.OrderedDict({0: x}), collections.defaultdict(lambda: x)
    d.update(((k, d[k - 1] * 2) for k in range(1, 4)), z=1)  # type: ignore[call-overload]  # keys of two types
    e |= ((k, e[k - 1] * 2) for k in range(1, 4))
    f.update((k, f[k - 1] * 2) for k in range(1, 4))
    g.update((k, g[k - 1] * 2) for k in range(1, 4))
    return d, e, f, dict(g)


def of_sets(x: Tensor) -> Any:
    s, t, u, v = {0}, {0, 1}, {0, 1}, {0, 1}
    s.update(len(s) for _ in range(3))
    t.difference_update(len(t) for _ in range(3))
    u.intersection_update(len(u) for _ in range(3))
    v.symmetric_difference_update(len(v) for _ in range(3))
    c = collections.Counter([0])
    c.update(len(c) for _ in range(3))
    c.subtract(len(c) for _ in range(3))
    return x, s, t, u, v, dict(c)


def functions(x: Tensor) -> Any:
    y: list[Any] = []

    def told(value: Any) -> Any:
        y.append(-value)
        return value

    found = [
        sum(drawn(y), start=Noting(y)).notes[-1],  # type: ignore[call-overload]  # of another type
        functools.reduce(lambda a, b: told(a + b), drawn(y)),
        functools.reduce(lambda a, b: told(a + b), drawn(y), 5),
        max(drawn(y), key=told),
        min((noted(y, i) for i in range(3)), key=told, default=4),
        max((noted(y, i) for i in range(0)), key=told, default=4),
        sorted(drawn(y), key=told),
        any(v > 0 for v in drawn(y)),
        all(v < 1 for v in drawn(y)),
        1 in drawn(y),
        9 in (noted(y, i) for i in range(2)),
        ",".join(str(v) for v in drawn(y)),
        [*drawn(y), len(y), *drawn(y)],
        (lambda *values: values)(*drawn(y), len(y)),
    ]
    return found, y, x


def later(x: Tensor) -> Any:
    y: list[Any] = []

    def told(*values: Any) -> Any:
        y.append(values)
        return values[0]

    both = map(told, drawn(y), (noted(y, i + 5) for i in range(3)))
    one, endless = map(told, drawn(y)), map(told, itertools.count(), drawn(y))
    pairs, shorter = zip(drawn(y), drawn(y, 2)), zip(drawn(y, 2), drawn(y))
    counted, kept, strict = enumerate(drawn(y)), filter(told, drawn(y)), zip(drawn(y), drawn(y), strict=True)
    y.append("made")
    all_of_them = [list(each) for each in (both, one, endless, pairs, shorter, counted, kept, strict)]
    a, b, *c = drawn(y, 4)
    return all_of_them, a, b, c, y, x


def of_itertools(x: Tensor) -> Any:
    y: list[Any] = []

    def told(value: Any, *more: Any) -> Any:
        y.append(-value)
        return value < 1

    return (
        list(itertools.accumulate(drawn(y), lambda a, b: told(b) + a)),
        [list(group) for _, group in itertools.groupby(drawn(y), told)],
        list(itertools.takewhile(told, drawn(y))),
        list(itertools.starmap(told, ((v,) for v in drawn(y)))),
        list(itertools.zip_longest(drawn(y), drawn(y, 1))),
        list(itertools.product(drawn(y, 2), drawn(y, 1))),
        y,
        x,
    )


def made(x: Tensor) -> Any:
    y: list[Any] = []
    found = (tuple(drawn(y)), list(drawn(y)), set(drawn(y)), frozenset(drawn(y)), dict((v, v) for v in drawn(y)))  # noqa: C402 - as above
    stacked = torch.stack([x * v for v in drawn(y)]), torch.cat(tuple(x * v for v in drawn(y)))
    modules = torch.nn.ModuleList()
    modules.extend(torch.nn.Identity() for _ in range(len(modules) + 2))
    apply = torch.nn.Sequential(*(torch.nn.Identity() for _ in drawn(y)))
    return found, bytes(drawn(y)), dict.fromkeys(drawn(y)), stacked, len(modules), apply(x), y


def partly(x: Tensor) -> Any:
    y = [x]
    try:
        y.extend(10 // (2 - i) + x for i in range(4))
    except ZeroDivisionError:
        return y, "divided"
    return y, "done"


FUNCTIONS = [unbound, filled_again, sliced, of_deques, of_dicts, of_sets, functions, later, of_itertools, made, partly]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_everything_is_drawn_as_python_does(function: Any) -> None:
    agree(function, (torch.tensor(1.0),) if function is not made else UP)


def chosen_by_the_run(x: Tensor) -> Any:
    y, z, d = [x * 0], collections.deque([x]), {0: x}
    y.extend(y[-1] + v for v in x if v > 0)
    z.extend(z[-1] * 2 for _ in range(2) if x[0] > 0)
    d.update((k, d[k - 1] * 2) for k in range(1, 3) if x[0] > 0)
    return len(y), list(z), d


def left_side(x: Tensor) -> Any:
    z = collections.deque([x])
    z.extendleft(z[0] * 2 for _ in range(2) if x[0] > 0)
    y = [len(z)]
    y += (len(y) for v in x if v > 0)
    some = set(k for k in ("a", "b") if x[0] > 0)  # noqa: C401 - as above
    d = {"b": 2}
    if x[0] > 0:
        d["a"] = 1
    return list(z), y, some, set(d.values()), dict(d.items()), {*(k for k in ("a", "b"))}


def folded_by_the_run(x: Tensor) -> Any:
    positive = [v for v in x if v > 0]
    return (
        sum(v for v in x if v > 0),
        functools.reduce(lambda a, b: a * b, (v + 1 for v in x if v > 0)),
        functools.reduce(lambda a, b: a * b, (v for v in x if v > 0), 2.0),
        max((v for v in x if v > 0), key=lambda v: -v, default=x.sum()),
        max(range(2), key=lambda i: x[i]),
        2.0 in (v for v in x),
        1 in (i for i in range(2) if x[i] > 0),
        list(zip(positive, x[x > 0], strict=True)),
    )


def unlike(x: Tensor) -> Any:
    y = [x, x]
    y.extend(i for i in range(int(x.abs().sum())))
    return y


def nothing_to_begin_with(x: Tensor) -> Any:
    try:
        return functools.reduce(lambda a, b: a + b, (v for v in x if v > 1.5))
    except TypeError as error:
        return str(error)


def noted_while_folded(x: Tensor) -> Any:
    notes: list[int] = []
    return functools.reduce(lambda a, b: (notes.append(len(notes)), a + b)[1], (v for v in x[x > 0])), notes


def strictly(x: Tensor) -> Any:
    total = torch.zeros(())
    for a, b in zip(x[x > 0], range(2), strict=True):
        total = total + a * b
    return total


OF_THE_RUN = [chosen_by_the_run, left_side, folded_by_the_run, unlike, noted_while_folded, strictly]


@pytest.mark.parametrize("function", OF_THE_RUN)
def test_what_only_the_run_decides_is_taken_one_by_one(function: Any) -> None:
    agree(function, UP, DOWN)


def test_reduce_of_nothing_raises_as_python_does() -> None:
    agree(nothing_to_begin_with, DOWN, (torch.tensor([1.0, 1.0]),))
