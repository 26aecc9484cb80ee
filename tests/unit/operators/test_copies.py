"""``copy.copy`` and ``copy.deepcopy`` of what holds tensors and numbers of the run."""

from __future__ import annotations

import collections
import copy
import dataclasses
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.cases.harness import python_module
from tests.unit.trace.agreement import agree, agree_fresh, outcome, refusal, same_error

UP, DOWN = torch.ones(2), -torch.ones(2)
CALLS = (UP, DOWN, UP * 3, DOWN * 4)


class Plain:
    def __init__(self, h: Any, n: Any = 0) -> None:
        self.h, self.n = h, n
        self.listed, self.keyed = [h], {"k": h}


@dataclasses.dataclass
class Data:
    h: Any
    n: Any = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    h: Any


class Slotted:
    __slots__ = ("a", "b", "unset")


class Pair(NamedTuple):
    a: Any
    b: Any


class Stated:
    def __init__(self, h: Any) -> None:
        self.h = h

    def __getstate__(self) -> Any:
        return {"h": self.h, "x": 1}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.y = 2


class Own:
    """Copies by methods of its own, which decide by a tensor and write."""

    def __init__(self, h: Any) -> None:
        self.h = h
        self.copies: list[str] = []

    def __copy__(self) -> Any:
        self.copies.append("copy")
        return Own(self.h if self.h.sum() > 0 else self.h * 5)

    def __deepcopy__(self, memo: Any) -> Any:
        self.copies.append("deep copy")
        made = Own(self.h * 2) if self.h.sum() > 0 else Own(copy.deepcopy(self.h, memo))
        memo[id(self)] = made
        return made


def of_an_object(x: Tensor) -> Any:
    o = Plain(x * 2, x.sum().item())
    p = copy.deepcopy(o)
    p.n = p.n + 1
    p.h += 1
    return p.h, p.n, o.h, o.n, p.listed[0] is p.h, p.keyed["k"] is p.h, p.h is o.h, p.listed is o.listed, type(p)


def shallow(x: Tensor) -> Any:
    o = Plain(x * 2, x.sum().item())
    p = copy.copy(o)
    p.n = p.n + 1
    p.listed.append(3)
    return p.h, p.n, o.n, len(o.listed), p.listed is o.listed, p.h is o.h, copy.copy([x, o])[1] is o


def of_records(x: Tensor) -> Any:
    o = Data(x * 2, int(x.sum()))
    p, q, r = copy.deepcopy(o), copy.copy(o), copy.deepcopy(Frozen(x))
    p.n += 1
    return p.h, p.n, q.h, q.n, q.h is o.h, r.h, copy.deepcopy(Pair(x, [o.n])), copy.copy(Pair(x, 1))


def of_containers(x: Tensor) -> Any:
    n = int(x.sum())
    held = [x * 2, n, {"a": x + 1, "b": [n, (x - 1, n)]}]
    p, q = copy.deepcopy(held), copy.copy(held)
    q.append(1)
    p[2]["b"].append(2)
    return p, q, held, copy.deepcopy((n, 1)), copy.deepcopy(n), copy.deepcopy({1, 2}), copy.copy({"k": n})


def of_other_containers(x: Tensor) -> Any:
    n = int(x.sum())
    ordered, queue = collections.OrderedDict(a=x), collections.deque([x, n], maxlen=3)
    default: Any = collections.defaultdict(list)
    default["k"].append(n)
    return (
        *(copy.deepcopy(ordered), dict(copy.deepcopy(default)), list(copy.deepcopy(queue))),
        *(copy.deepcopy(queue).maxlen, copy.deepcopy(collections.Counter(a=n)), copy.copy(queue)[1]),
        copy.copy(default)["k"] is default["k"],
    )


def of_slots(x: Tensor) -> Any:
    o = Slotted()
    o.a, o.b = x * 2, [int(x.sum())]
    p, q = copy.deepcopy(o), copy.copy(o)
    p.b.append(1)
    return p.a, p.b, o.b, q.b is o.b, hasattr(p, "unset")


def by_methods(x: Tensor) -> Any:
    o = Own(x)
    p, q, r = copy.deepcopy(o), copy.copy(o), copy.deepcopy([o, o])
    return p.h, q.h, r[0].h, r[0] is r[1], o.copies


def by_their_state(x: Tensor) -> Any:
    o = Stated(x * 2)
    p, q = copy.deepcopy(o), copy.copy(o)
    return p.h, p.x, p.y, q.h, q.y, q.h is o.h, p.h is o.h


def of_tensors(x: Tensor) -> Any:
    y = x * 2
    deep, flat = copy.deepcopy(y), copy.copy(y)
    deep += 1
    flat += 1
    turned, row = copy.deepcopy(torch.stack([x, y]).t()), copy.deepcopy(torch.stack([x, y])[1])
    row += 1
    return y, deep, flat, flat is y, turned.stride(), turned.is_contiguous(), row


def on_one_path(x: Tensor) -> Any:
    o = Plain(x * 2, int(x.sum()))
    if x.sum() > 0:
        p = copy.deepcopy(o)
        p.n += 1
    else:
        p = o
    p.n += 1
    return p.n, o.n, p.h, o.h


def the_best_of_a_loop(x: Tensor) -> Any:
    state = Data(x, x * 2)
    best, k = copy.deepcopy(state), 0
    while k < 5:
        state.h = state.h + 1
        state.n = state.n - 1
        k += 1
        if state.h.sum() < 8:
            best = copy.deepcopy(state)
    return best.h, best.n, state.h


def the_best_of_what_is_written(x: Tensor) -> Any:
    state = Data(x.clone(), x * 2)
    best, k = copy.deepcopy(state), 0
    while k < 5:
        state.h += 1
        k += 1
        if state.h.sum() < 8:
            best = copy.deepcopy(state)
    return best.h, best.n, state.h


def that_lead_to_themselves(x: Tensor) -> Any:
    o: Any = Plain(x * 2)
    o.me = o
    o.listed.append(o.listed)
    p = copy.deepcopy(o)
    return p.me is p, p.listed[1] is p.listed, p.h


def that_may_be_none(x: Tensor) -> Any:
    o = Data(None, 1)
    if x.sum() > 0:
        o.h = x * 2
    p = copy.deepcopy(o)
    return 0 if p.h is None else p.h


def of_what_paths_leave(x: Tensor) -> Any:
    o = Data(x)
    if x.sum() > 2:
        o.h, o.n = None, "none"
    elif x.sum() < 0:
        o.n = "low"
    p, q = copy.deepcopy(Data(x) if x.sum() > 0 else Data(x * 2)), copy.deepcopy(o)
    p.n += 5
    return p.h, p.n, q.h is None, q.n


def of_some_keys(x: Tensor) -> Any:
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    p = copy.deepcopy(d)
    p["c"] = x + 1
    return p, d, "b" in p


def of_keys_of_the_run(x: Tensor) -> Any:
    d = {}
    for i in range(3):
        d[int(x[0]) * i, 1] = x * i
    p = copy.deepcopy(d)
    p[7, 7] = x
    return d, p, copy.copy(d), copy.deepcopy({int(x[0]), 4})


def that_grow(x: Tensor) -> Any:
    o = Data([], [])
    while x.sum() < 5:
        x = x + 1
        o.h.append(x)
        o.n.append(x.sum().item())
    p, q = copy.deepcopy(o), copy.copy(o.h)
    for each in p.h:
        each.add_(1)
    return p.h, p.n, o.h, q, len(p.h)


def of_modules(x: Tensor) -> Any:
    layer = nn.Linear(2, 2)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    p = copy.deepcopy(layer)
    return p.weight is layer.weight, p(x)


def of_leaves(x: Tensor) -> Any:
    y = x.clone().requires_grad_()
    z, same = copy.deepcopy(y), copy.copy(y)
    (z * 3).sum().backward()
    return z.grad, y.grad, z.requires_grad, same.requires_grad, same.is_leaf, same is y


def of_results_with_gradients(x: Tensor) -> Any:
    y = x.clone().requires_grad_()
    try:
        return copy.deepcopy(Data(y * 2)).h
    except RuntimeError as error:
        return str(error)


def of_results_with_gradients_uncaught(x: Tensor) -> Any:
    return copy.deepcopy([x.clone().requires_grad_() * 2])


EVERY = (
    *(of_an_object, shallow, of_records, of_containers, of_other_containers, of_slots, by_methods, by_their_state),
    *(of_tensors, on_one_path, the_best_of_a_loop, the_best_of_what_is_written, that_lead_to_themselves),
    *(that_may_be_none, of_what_paths_leave, of_some_keys, of_keys_of_the_run, that_grow, of_modules, of_leaves),
    *(of_results_with_gradients,),
)


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


@pytest.mark.parametrize("function", [*EVERY, of_results_with_gradients_uncaught])
def test_without_a_full_graph(function: Any) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in CALLS:
        expected, actual = outcome(function, (x,)), outcome(static, (x,))
        assert same_error(expected["error"], actual["error"])
        assert_same(expected["value"], actual["value"])


def test_a_result_that_requires_a_gradient_has_no_copy() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        sg.to_static(of_results_with_gradients_uncaught, backend="eager")(UP)


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.best: Any = None
        self.history: list[Any] = []
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x: Tensor) -> Any:
        self.mean.add_(x)
        self.best = copy.deepcopy({"mean": self.mean, "calls": len(self.history)})
        self.history.append(copy.copy(self.best))
        return self.best["mean"] * 2


def test_what_a_module_keeps_is_a_copy() -> None:
    agree_fresh(Remembering, *CALLS, programs=4)


def test_tensors_from_outside() -> None:
    held = Plain(torch.ones(2), 3)
    teacher = nn.Linear(2, 2)

    def function(x: Tensor) -> Any:
        p, q, layer = copy.deepcopy(held), copy.copy(held), copy.deepcopy(teacher)
        p.n += 1
        p.h += x
        q.n += 5
        return p.h, p.n, q.n, p.listed[0] is p.h, layer(x), layer.weight is teacher.weight

    static = sg.to_static(function, backend="eager")
    for x in CALLS:
        assert_same(function(x), static(x))
        with torch.no_grad():
            teacher.weight.add_(1)
            held.h.add_(1)


# ---- what a program cannot copy
def copied_together(a: Tensor, b: Tensor) -> Any:
    p = copy.deepcopy([a, b])
    p[0] += 1
    return p


def test_arguments_that_share_memory() -> None:
    static = sg.to_static(copied_together, backend="eager")
    for a, b in ((UP, DOWN), (UP, UP), (torch.ones(4)[:2], torch.ones(4)[2:])):
        assert_same(copied_together(a, b), static(a, b))
    with pytest.raises(sg.CaptureError, match="two tensors that may share memory"):
        static(UP, UP.view(2))


def views(x: Tensor) -> Any:
    y = x * 2
    return copy.deepcopy([y, y.view(2)])


def parts_of_one(x: Tensor) -> Any:
    first, second = torch.cat([x, x]).chunk(2)
    return copy.deepcopy(Pair(first, second))


def one_of_two(x: Tensor) -> Any:
    y = x * 2
    p = copy.deepcopy([y, y if x.sum() > 0 else x * 3])
    p[0].add_(5)
    return p


def lists_of_paths(x: Tensor) -> Any:
    a, b = [1], [2]
    p = copy.deepcopy([a if x.sum() > 0 else b, a, b])
    p[0].append(5)
    return p


def columns(x: Tensor) -> Any:
    return copy.deepcopy(torch.stack([x, x * 2])[:, 0])


def records_of_a_loop(x: Tensor) -> Any:
    held = []
    while x.sum() < 5:
        x = x + 1
        held.append(Data(x, x * 2))
    return [each.h for each in copy.deepcopy(held)]


def with_a_gradient(x: Tensor) -> Any:
    y = x.clone().requires_grad_()
    (y * 2).sum().backward()
    return copy.deepcopy(y).grad


REFUSED = {
    views: "SG301",
    one_of_two: "SG301",
    lists_of_paths: "SG305",
    columns: "SG301",
    records_of_a_loop: "SG210",
    with_a_gradient: "SG301",
}


@pytest.mark.parametrize("function", REFUSED)
def test_refused_and_left_to_python(function: Any) -> None:
    assert refusal(function, UP).reason.code == REFUSED[function]
    static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    for x in CALLS:
        assert_same(function(x), static(x))


def test_parts_of_one_tensor_have_copies() -> None:
    agree(parts_of_one, *CALLS)


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_in_files(suffix: str, tmp_path: Any) -> None:
    path = tmp_path / f"f{suffix}"
    sg.save(the_best_of_a_loop, path, args=(UP,))
    loaded: Any = sg.load(path) if suffix == ".pt2" else python_module(path).the_best_of_a_loop
    for x in CALLS:
        assert_same(the_best_of_a_loop(x), loaded(x))
