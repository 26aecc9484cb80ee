"""Dicts with keys that are there on some paths only."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.operators.partly_filled import CALLS, UP, half
from tests.unit.trace.agreement import agree, agree_fresh, program_of


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
    e, f, g = dict(d), {**d, "z": x}, collections.deque(d.values())
    d["a"] = x + 1
    return d, e, f, list(g)


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
]


@pytest.mark.parametrize("function", DICTS)
@pytest.mark.parametrize("first", range(3))
def test_agrees(function: Any, first: int) -> None:
    agree(function, *CALLS[first:], *CALLS[:first])


def test_a_dict_of_the_callers() -> None:
    for x in CALLS:
        static_arg, eager_arg = {"x": x, "y": x + 1}, {"x": x, "y": x + 1}
        import stillgraph as sg

        static = sg.to_static(of_an_argument, full_graph=True, backend="eager")
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
        sg.to_static(f, full_graph=True, backend="eager")(mine).backward()
        f(eager).backward()
        assert torch.equal(mine.grad, eager.grad)


def test_the_program_shows_it() -> None:
    assert "or nothing" in str(program_of(returned, UP))
