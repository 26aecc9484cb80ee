"""Dicts with keys, and sets with elements, that are there on some paths only."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import agree, agree_fresh, program_of, refusal

UP = torch.tensor([3.0, 1.0, 2.0, 5.0])
DOWN = torch.tensor([-3.0, -1.0, -2.0, -1.0])
MIXED = torch.tensor([3.0, -4.0, 1.5, -1.0])
CALLS = (DOWN, UP, MIXED)


def half(x: Tensor) -> dict[str, Any]:
    """A dict that has "b" for `UP` and "c" for `DOWN`."""
    found: dict[str, Any] = {"a": x}
    if x.sum() > 1:
        found["b"] = x * 2
    elif x.sum() < -1:
        found["c"] = x[0].item()
    return found


# ---- dicts
def returned(x: Tensor) -> Any:
    return half(x)


def asked(x: Tensor) -> Any:
    d = half(x)
    return "a" in d, "b" in d, "c" not in d, "d" in d, "b" in d.keys(), len(d), bool(d)  # noqa: SIM118 (a view)


def read_where_it_is(x: Tensor) -> Any:
    d = half(x)
    return d["b"] + 1 if "b" in d else d["a"]


def read(x: Tensor) -> Any:
    return half(x)["b"] + 1


def caught(x: Tensor) -> Any:
    try:
        return half(x)["b"] + 1
    except KeyError:
        return x


def got(x: Tensor) -> Any:
    d = half(x)
    return d.get("b", x - 1), d.get("c"), d.get("d", 7), d.get("a")


def run_over(x: Tensor) -> Any:
    total, count, names = x * 0, 0, 0
    for key, value in half(x).items():
        total = total + value
        count += 1
        if key == "c":
            names += 10
    for value in half(x).values():
        total = total * value
    for key in half(x):
        names += len(key)
    return total, count, names


def left_early(x: Tensor) -> Any:
    for key, value in half(x).items():
        if key == "b":
            return value + 1
        if key == "c":
            break
    else:
        return x - 3
    return x - 2


def listed(x: Tensor) -> Any:
    d = {"a": x}
    if x.sum() > 1:
        d["b"] = x * 2
    tensors = list(d.values())
    return tensors, torch.stack(tensors).sum(0), sum(d.values()), [v + 1 for v in d.values() if v.sum() > 2]


def deleted(x: Tensor) -> Any:
    d = {"a": x, "b": x + 1, "c": x + 2}
    if x.sum() > 1:
        del d["b"]
    if x[0] > 0:
        d.pop("a")
    d.pop("b", None)
    return d, len(d)


def deleted_though_missing(x: Tensor) -> Any:
    d = half(x)
    del d["b"]
    return d


def popped(x: Tensor) -> Any:
    d = half(x)
    last = d.pop("c", 0.5)
    return last, d, d.pop("a"), len(d)


def set_anew(x: Tensor) -> Any:
    d = {"a": x}
    if x.sum() > 1:
        d["b"] = x * 2
    d["b"] = d.get("b", x) + 1
    return d, d["b"], len(d)


def updated(x: Tensor) -> Any:
    d = {"a": x}
    if x.sum() > 1:
        d.update(b=x * 2)
    d.update({"a": x + 1, "b": x})
    e = d.copy()
    e["c"] = x
    d.clear()
    return d, e


def set_by_default(x: Tensor) -> Any:
    d = {"a": x}
    if x.sum() > 1:
        d["b"] = x * 2
    b = d.setdefault("b", x - 1)
    return b, d.setdefault("a", x + 5), d


def copied(x: Tensor) -> Any:
    d = {"a": x}
    if x.sum() > 1:
        d["b"] = x * 2
    e, f = dict(d), {**d, "z": x}
    d["a"] = x + 1
    return d, e, f


def counted(x: Tensor) -> Any:
    counts: dict[str, int] = collections.defaultdict(int)
    if x[0] > 0:
        counts["up"] += 1
    counts["up"] += 1
    return dict(counts), counts["up"], counts["down"]


def of_the_library(x: Tensor) -> Any:
    d, o, c = collections.defaultdict(list), collections.OrderedDict(a=x), collections.Counter("aab")
    if x.sum() > 1:
        d["new"] = [x]
        o["b"] = x + 1
        c["z"] += 2
        if x[0] > 2:
            return c, d, o
    else:
        o.move_to_end("a")
        c.update("ab")
    return d, o, c


def filled_in_a_loop(x: Tensor) -> Any:
    last: dict[str, Tensor] = {}
    while x.abs().sum() < 40:
        last["x"] = x
        x = x * 2
    return last, last.get("x", x), len(last)


def one_after_the_other(x: Tensor) -> Any:
    d = {}
    for i in range(4):
        if x[i] > 0:
            d[i] = x[i] * i
    return d, len(d), 2 in d


def nested(x: Tensor) -> Any:
    d: dict[str, Any] = {"in": {"a": x}}
    if x.sum() > 1:
        d["in"]["b"] = [x, x + 1]
        d["new"] = {"k": x, "n": 3}
    return d, "new" in d


def made_on_each_path(x: Tensor) -> Any:
    if x.sum() > 1:
        d = {"a": x, "b": x + 1}
    else:
        d = {"b": x, "c": x + 2}
    return d["b"], d, len(d)


def in_nested_branches(x: Tensor) -> Any:
    d = {}
    if x.sum() > 1:
        d["b"] = x
        if x[0] > 2:
            d["c"] = x + 1
    elif x[0] > 0:
        d["d"] = x
    return d, "c" in d, len(d)


def two_names(x: Tensor) -> Any:
    d = {"a": x}
    e = d
    if x.sum() > 1:
        d["b"] = x
    e["c"] = x + 1
    return d, e, len(e), d is e


def handed_on(x: Tensor) -> Any:
    def add(target: dict[str, Tensor]) -> int:
        if target["a"].sum() > 1:
            target["b"] = target["a"] + 1
        return len(target)

    d = {"a": x}
    return add(d), d


def of_an_argument(d: dict[str, Tensor]) -> Any:
    if d["x"].sum() > 1:
        d["more"] = d["x"] * 2
    else:
        d.pop("y")
    return len(d)


class Keeps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Tensor] = {}
        self.tags = {"new"}

    def forward(self, x: Tensor) -> Any:
        if x.sum() > 1:
            self.seen["up"] = x * 2
            self.tags.add("up")
        elif x.sum() < -1:
            self.tags.discard("new")
        return x + len(self.seen), "up" in self.tags


# ---- dicts whose keys are in another order on each path
def another_order(x: Tensor) -> Any:
    d = {}
    if x.sum() > 1:
        d["a"], d["b"], d["n"] = x, x + 1, 1
    else:
        d["b"], d["a"] = x, x + 2
    d["b"] = d["b"] * 2
    return d, "n" in d, len(d), d["a"], d.get("n")


def set_again_in_front(x: Tensor) -> Any:
    d = half(x)
    d["b"] = x
    d["z"] = 3
    return d


def counts(x: Tensor) -> Any:
    found: dict[str, int] = {}
    for value in x:
        name = "up" if value > 1.6 else "down" if value < -1.6 else "flat"
        found[name] = found.get(name, 0) + 1
    return found, found.get("up", 0), len(found)


def counter(x: Tensor) -> Any:
    found: collections.Counter[str] = collections.Counter()
    for value in x:
        found["up" if value > 0 else "down"] += 1
    return dict(found), found["up"], found["never"]


def reordered_in_a_loop(x: Tensor) -> Any:
    d = {"a": x, "b": x}
    while x.abs().sum() < 60:
        if x[0] > 4:
            d["a"] = d.pop("a") + 1
        else:
            d["c"] = x
        x = x * 2
    del d["b"]
    return d, len(d)


def in_front_or_behind(x: Tensor) -> Any:
    last: dict[str, Tensor] = {}
    i = 0
    while x.abs().sum() < 60:
        last["x"] = x
        if x[0] > 4:
            last["big"] = x + 1
        x = x * 2
        i += 1
    return last, i


def taken_from_it(x: Tensor) -> Any:
    d = set_again_in_front(x)
    if x[0] > 0:
        del d["a"]
    return d.pop("z"), d.pop("c", None), d, "b" in d


# ---- sets
def added(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s, 2 in s, 1 in s, 3 in s, len(s)


def taken(x: Tensor) -> Any:
    s = {1, 2, 3}
    if x.sum() > 1:
        s.remove(2)
    s.discard(2)
    if x[0] > 0:
        s.discard(3)
    return s, len(s)


def taken_though_missing(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    s.remove(2)
    return s


def summed(x: Tensor) -> Any:
    s = set()
    for i in range(4):
        if x[i] > 0:
            s.add(i)
    total = 0
    for i in s:
        total = total + i
    return sum(s), total, len(s), s | {7}, bool(s)


def grown_set(x: Tensor) -> Any:
    s: set[int] = set()
    while x.abs().sum() < 40:
        s.add(1)
        if x[0] > 4:
            s.add(2)
        x = x * 2
    return s, 1 in s


def updated_set(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    t = set(s)
    s.update([2, 3])
    t.add(4)
    return s, t, len(s), len(t)


DICTS = [
    returned,
    asked,
    read_where_it_is,
    read,
    caught,
    got,
    run_over,
    left_early,
    listed,
    deleted,
    deleted_though_missing,
    popped,
    set_anew,
    updated,
    set_by_default,
    copied,
    counted,
    of_the_library,
    filled_in_a_loop,
    one_after_the_other,
    nested,
    made_on_each_path,
    in_nested_branches,
    two_names,
    handed_on,
    another_order,
    set_again_in_front,
    counts,
    counter,
    reordered_in_a_loop,
    in_front_or_behind,
    taken_from_it,
]
SETS = [added, taken, taken_though_missing, summed, grown_set, updated_set]


@pytest.mark.parametrize("function", [*DICTS, *SETS])
@pytest.mark.parametrize("first", range(3))
def test_agrees(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])


def test_a_dict_of_the_callers() -> None:
    for x in CALLS:
        static_arg, eager_arg = {"x": x, "y": x + 1}, {"x": x, "y": x + 1}
        import stillgraph as sg

        static = sg.to_static(of_an_argument, full_graph=True)
        assert static(static_arg) == of_an_argument(eager_arg)
        assert list(static_arg) == list(eager_arg)
        assert all(torch.equal(static_arg[k], eager_arg[k]) for k in eager_arg)


def test_on_a_module() -> None:
    agree_fresh(Keeps, *CALLS, programs=3)  # what it has seen is what the program was made for


def test_gradients() -> None:
    def f(x: Tensor) -> Any:
        return sum(v.sum() for v in listed(x)[0])

    import stillgraph as sg

    for x in CALLS:
        mine, eager = x.clone().requires_grad_(), x.clone().requires_grad_()
        sg.to_static(f, full_graph=True)(mine).backward()
        f(eager).backward()
        assert torch.equal(mine.grad, eager.grad)


# ---- names, orders and kinds
def one_set_twice(x: Tensor) -> Any:
    s = {1}
    o = {"s": s}
    if x.sum() > 1:
        s.add(2)
    return o, s


def filled_by_a_while_loop(x: Tensor) -> Any:
    found: dict[str, int] = collections.defaultdict(int)
    i = 0
    while i < 4 and x.abs().sum() < 40:
        found["up" if x[i] > 0 else "down"] += 1
        x = x * 1.5
        i += 1
    return dict(found), i


def taken_out_and_put_back(x: Tensor) -> Any:
    d = {"a": 1, "b": 2}
    if x[0] > 0:
        d["a"] = d.pop("a")
    if x[1] > 0:
        del d["b"]
    d["c"] = 3
    return d, d.setdefault("b", 7), d.setdefault("z", 8), len(d)


def equal_to_no_other(x: Tensor) -> Any:
    nan = float("nan")
    d = {}
    if x.sum() > 1:
        d[nan] = 1
    return nan in d, len(d), d.get(nan, 0)


def copied_in_a_loop(x: Tensor) -> Any:
    d, n = [0], x.abs().max()
    while n > 1:
        n = n / 2
        d = list(d)
    d[0] = 1
    return d, n


def set_before_it_raises(x: Tensor) -> Any:
    h: dict[str, Any] = {"z": x}
    try:
        h["a"] = x
        if x.sum() > 1:
            raise KeyError("big")
        h["b"] = [x]
        if x[0] > 0:
            raise KeyError("mixed")
    except KeyError:
        h["c"] = x
    return h, len(h), "b" in h


def ordered_dict(x: Tensor) -> Any:
    d = collections.OrderedDict(z=1)
    if x.sum() > 1:
        d["a"] = 5
    d["b"] = 2
    if x[0] > 0:
        del d["z"]
    return d, sum(d.values()), len(d.items()), [v for v in d.values()], d.pop("a", 0), d  # noqa: C416


@pytest.mark.parametrize(
    "function",
    [
        *(one_set_twice, filled_by_a_while_loop, taken_out_and_put_back, equal_to_no_other, copied_in_a_loop),
        *(ordered_dict, set_before_it_raises),
    ],
)
@pytest.mark.parametrize("first", range(3))
def test_agrees_in_more_than_value(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])


# ---- refused
def two(x: Tensor) -> dict[str, int]:
    d = {"b": 2}
    if x.sum() > 1:
        d["a"] = 1
    return d


def some(x: Tensor) -> set[int]:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s


def deleted_while_run_over(x: Tensor) -> Any:
    d = {"a": 1, "b": 2}
    for key in d:
        if x.sum() > 1:
            del d[key]
    return d


def copied_with_another_name(x: Tensor) -> Any:
    d, n = [0], x.abs().max()
    e = d
    while n > 1:
        n = n / 2
        d = list(d)
    d[0] = 1
    return d, e


def left_unassigned(x: Tensor) -> Any:
    found = {}
    if x.sum() > 1:
        found["a"] = 1
    for key in found:
        name = key
    return name


SPREAD = [
    lambda x: [*two(x).values()],
    lambda x: (*two(x).items(), 1),
    lambda x: max(*two(x).values(), 0),
    lambda x: set(two(x).values()),
    lambda x: collections.deque(two(x).values()),
]
UNSEEN = [
    lambda x: {("q", 1)} | two(x).items(),
    lambda x: two(x).keys() == {"b"},
    lambda x: [two(x)] == [{"b": 2}],
    lambda x: (1, some(x)) != (1, {1}),
    lambda x: some(x) in ({1}, {2}),
    lambda x: [{"b": 2}].count(two(x)),
    lambda x: (some(x) | {7}) <= {1, 7},
    lambda x: frozenset(some(x)) == frozenset({1}),
    lambda x: hash(frozenset(some(x))),
    lambda x: 1 if some(x) == {1} else 0,
]


@pytest.mark.parametrize(("function", "code"), [*((f, "SG206") for f in SPREAD), *((f, "SG211") for f in UNSEEN)])
def test_what_nobody_would_see_is_refused(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (deleted_while_run_over, "SG211"),
        (copied_with_another_name, "SG305"),
        (left_unassigned, "SG204"),
        (lambda x: range(int(x[0])), "SG306"),
        (lambda x: collections.Counter({1: 5})[int(x[0])], "SG301"),
    ],
)
def test_refused_for_another_reason(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


def run_over_in_no_order(x: Tensor) -> Any:
    return [value for value in set_again_in_front(x).values()]  # noqa: C416 (as people write it)


def overlapping_union(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s | {2}


def compared(x: Tensor) -> Any:
    return half(x) == {"a": x}


def subset(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s.issubset({1})


def ordered_sets(x: Tensor) -> Any:
    s = {1}
    if x.sum() > 1:
        s.add(2)
    return s <= {1}


def spread_out(x: Tensor) -> Any:
    return [*half(x)], 1


def counted_otherwise(x: Tensor) -> Any:
    n = 0
    for i, _ in enumerate(half(x)):
        n += i
    return n


def printed(x: Tensor) -> Any:
    print(half(x))


def named(x: Tensor) -> Any:
    return f"{half(x)}"


def in_a_display(x: Tensor) -> Any:
    return {"b": 1, **half(x)}


def as_keywords(x: Tensor) -> Any:
    return dict(**half(x))


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (run_over_in_no_order, "SG211"),
        (overlapping_union, "SG211"),
        (compared, "SG211"),
        (subset, "SG211"),
        (ordered_sets, "SG211"),
        (counted_otherwise, "SG206"),
        (spread_out, "SG211"),
        (printed, "SG211"),
        (named, "SG302"),
        (in_a_display, "SG211"),
        (as_keywords, "SG211"),
        (lambda x: len(list(map(len, half(x)))), "SG203"),
        (lambda x: iter(half(x)), "SG211"),
        (lambda x: collections.OrderedDict(half(x)), "SG211"),
    ],
)
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


def test_the_program_shows_it() -> None:
    assert "or nothing" in str(program_of(returned, UP))


# ---- keys that are numbers which only the run knows
def looked_up(x: Tensor) -> Any:
    k = int((x > 0).sum())
    table = {0: x, 1: x + 1, 4: x + 2, 2: x * 5}
    names = {True: 1.5, False: 2.5}
    return table[k], names[bool(x[0] > 0)], k in table, k in {2, 3}, k not in frozenset((0, 9)), table.get(k, x)


def looked_up_in_vain(x: Tensor) -> Any:
    k = int((x > 0).sum())
    return {0: 1, 2: 3}.get(k, -1), {0: x, 2: x + 1}.get(k), {0: x, 2: x + 1}[k]


def looked_up_in_vain_and_caught(x: Tensor) -> Any:
    try:
        return {0: (x, 1), 2: (x + 1, 2)}[int((x > 0).sum())]
    except KeyError:
        return (x, 0)


@pytest.mark.parametrize("function", [looked_up, looked_up_in_vain, looked_up_in_vain_and_caught])
def test_staged_keys(function: Any) -> None:
    agree(function, *CALLS)
    agree(function, *reversed(CALLS))
