from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.operators.objects.attribute_stores import del_attr, set_attr
from stillgraph.operators.objects.attributes import attr
from stillgraph.operators.objects.globals import del_global, set_global
from stillgraph.operators.objects.inplace import inplace
from stillgraph.operators.objects.stores import del_item, set_item
from stillgraph.operators.objects.subscripts import item
from tests.unit.trace.agreement import N, P, agree, agree_fresh, outcome, refusal, same_error

STEPS = 0


# ---- plain
def test_plain_attributes() -> None:
    target = type("Target", (), {"doubled": property(lambda self: self.n * 2)})()
    set_attr(target, "n", 3)
    assert (target.n, attr(target, "doubled")) == (3, 6)
    del_attr(target, "n")
    assert not hasattr(target, "n")
    with pytest.raises(AttributeError):
        del_attr(target, "n")


def test_plain_items() -> None:
    target = {"a": 1}
    set_item(target, "b", 2)
    del_item(target, "a")
    assert target == {"b": 2}
    assert item(target, "b") == 2
    assert item([1, 2, 3], slice(1, None)) == [2, 3]
    with pytest.raises(KeyError):
        item(target, "a")


def test_plain_globals() -> None:
    namespace: dict[str, Any] = {}
    set_global(namespace, "name", 1)
    assert namespace == {"name": 1}
    del_global(namespace, "name")
    assert namespace == {}
    with pytest.raises(NameError, match="name 'name' is not defined"):
        del_global(namespace, "name")


@pytest.mark.parametrize(
    ("symbol", "left", "right", "result"),
    [
        ("+", [1], [2], [1, 2]),
        ("-", 3, 1, 2),
        ("*", [0], 2, [0, 0]),
        ("/", 3, 2, 1.5),
        ("//", 7, 2, 3),
        ("%", 7, 4, 3),
        ("**", 2, 3, 8),
        ("&", {1, 2}, {2}, {2}),
        ("|", {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ("^", 5, 1, 4),
        ("<<", 1, 3, 8),
        (">>", 8, 3, 1),
    ],
)
def test_plain_in_place(symbol: str, left: Any, right: Any, result: Any) -> None:
    left = copy.copy(left)  # the parameters are those of every front end
    assert inplace(symbol, left, right) == result
    assert not isinstance(left, (list, set, dict)) or left == result


# ---- containers made in the function
@dataclasses.dataclass
class Point:
    x: Any
    n: int = 0
    seen: list[Any] = dataclasses.field(default_factory=list)


def lists(x: Tensor) -> Any:
    values = [1, x, 3]
    values.insert(0, x * 2)
    values.extend([4])
    values += [5]
    last = values.pop()
    values.reverse()
    del values[0]
    values[0], values[1] = values[1], values[0]
    a, *b = values
    return values, last, a, b, values[::2], values[-1], len(values)


def dicts(x: Tensor) -> Any:
    d = {"a": 1}
    d.setdefault("b", x)
    d.update(c=2)
    d["d"] = x * 2
    d |= {"e": None}
    taken = d.pop("a")
    del d["c"]
    return d, taken, list(d), d.get("zz", 3), {**d, "f": x}, dict(d, g=1)


def other_containers(x: Tensor) -> Any:
    queue, counts = collections.deque([1, 2]), collections.Counter("aab")
    queue.appendleft(3)
    queue.rotate(1)
    counts["a"] += 1
    numbers = {1, 2}
    numbers.add(3)
    numbers |= {9}
    return list(queue), dict(counts), numbers, x


def written_in_arms(x: Tensor) -> Any:
    values, d, p = [1, x], {"a": 1}, Point(x)
    if x.sum() > 0:
        values[0], values[1] = 5, x * 2
        d["a"] = x.sum().item()
        p.x, p.n = x + 1, 2
    else:
        d["a"] = 2.5
        p.n = 7
    values.append(3)
    return values, d, p, p.seen


def written_in_a_loop(x: Tensor) -> Any:
    p, totals = Point(x), [0, 0.0]
    while p.x.sum() > 0.5:
        p.x = p.x / 2
        p.n += 1
        totals[0] += 2
        totals[1] = totals[1] + p.x.sum().item()
    return p, totals


def shared(x: Tensor) -> Any:
    inner = [x]
    return [inner, inner], {"a": inner}


@pytest.mark.parametrize("function", [lists, dicts, other_containers, written_in_arms, written_in_a_loop, shared])
def test_containers_of_the_function(function: Any) -> None:
    agree(function, P, N)


def test_one_list_returned_twice_stays_one_object() -> None:
    value, more = sg.to_static(shared, backend="eager")(P)
    assert value[0] is value[1]
    assert more["a"] is value[0]


@pytest.mark.parametrize("index", [0, 2, -1, 3])
def test_an_index_that_only_the_run_knows(index: int) -> None:
    def pick(i: Tensor) -> Any:
        return (10, 20, 30)[int(i)], (1.5, 2, True)[int(i)] if int(i) < 2 else None

    expected = outcome(pick, (torch.tensor(index),))
    actual = outcome(sg.to_static(pick, backend="eager"), (torch.tensor(index),))
    assert same_error(expected["error"], actual["error"])


def test_few_unlike_elements_are_told_apart_by_an_index_of_the_run() -> None:
    agree(lambda x: (["a", x][int(x.sum()) % 2], len([[x], x, "abcd"][int(x.sum())])), P * 0, P / 6, P / 3, -P / 3)


def test_many_unlike_elements_need_a_known_index() -> None:
    assert refusal(lambda x: ["a", x, *[[x]] * 15][int(x.sum()) % 2], P).reason.code == "SG203"


# ---- arguments
def changes_its_list(x: Tensor, values: list[Any]) -> Any:
    values.append(x)
    values[0] = x * 2
    return values


def changes_its_list_in_an_arm(x: Tensor, values: list[Any]) -> Any:
    if x.sum() > 0:
        values[1] = x * 2
    else:
        values[0] = x
    return x


def changes_its_dict(x: Tensor, d: dict[str, Any]) -> Any:
    d["b"] = x + d["a"]
    if x.sum() > 0:
        d["a"] = x * 2
    return d


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (changes_its_list, [(P, [N, P]), (N, [P, N])]),
        (changes_its_list_in_an_arm, [(P, [N, P]), (N, [P, N])]),
        (changes_its_dict, [(P, {"a": N}), (N, {"a": P})]),
    ],
)
def test_arguments_are_changed_in_place(function: Any, calls: list[Any]) -> None:
    agree(function, *calls)


# ---- state between calls
class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps, self.rate, self.last, self.on = 0, 1.5, None, False
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.tensor(0))


def module(step: Callable[[Any, Tensor], Any]) -> Callable[[], nn.Module]:
    return lambda: type("Module", (Stateful,), {"forward": step})()


def counts(self: Any, x: Tensor) -> Any:
    self.steps += 1
    self.rate = self.rate * 2
    self.on = not self.on
    return x * self.steps


def counts_in_an_arm(self: Any, x: Tensor) -> Any:
    if x.sum() > 0:
        self.steps += 10
    else:
        self.rate = self.steps / 2
    return x * self.steps + self.rate


def counts_in_a_loop(self: Any, x: Tensor) -> Any:
    while x.sum() > 1:
        x = x / 2
        self.steps += 1
    return x


def keeps_a_tensor(self: Any, x: Tensor) -> Any:
    self.last = x * 2
    return self.last + 1


def changes_buffers(self: Any, x: Tensor) -> Any:
    self.mean = self.mean * 0.9 + x
    self.count += 1
    if x.sum() > 0:
        self.mean.mul_(2)
    else:
        self.mean = self.mean + 1
    return self.mean * self.count


def sets_what_it_read(self: Any, x: Tensor) -> Any:
    self.steps = int(x.sum()) + self.steps
    self.rate = x.max().item()
    return x + self.steps


@pytest.mark.parametrize("step", [counts, counts_in_an_arm, counts_in_a_loop, changes_buffers, sets_what_it_read])
def test_modules_keep_their_state(step: Any) -> None:
    agree_fresh(module(step), P, N, P, N)


def test_a_tensor_kept_for_the_next_call() -> None:
    agree_fresh(module(keeps_a_tensor), P, N, P, N, programs=2)


def closure() -> Callable[[Tensor], Tensor]:
    count, total = 0, torch.zeros(3)

    def step(x: Tensor) -> Tensor:
        nonlocal count, total
        count += 1
        total = total + x
        if x.sum() > 0:
            count += 1
            total = total * 2
        return total + count

    return step


def test_closures_keep_their_state() -> None:
    agree_fresh(closure, P, N, P, N)


def counted_globally(x: Tensor) -> Tensor:
    global STEPS
    STEPS += 1
    if x.sum() > 0:
        STEPS += 10
    return x * STEPS


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STEPS", 0)
    static = sg.to_static(counted_globally, backend="eager")
    for x, steps in ((P, 11), (N, 12), (P, 23)):
        assert torch.equal(static(x), x * steps)
        assert steps == STEPS
    assert static.cache_info().programs == 1
