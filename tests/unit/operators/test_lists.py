"""Lists whose length only the run knows: whatever Python's list does, the program does."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from sympy.utilities.iterables import rotate_left
from torch import Tensor, nn

from tests.unit.trace.agreement import N, P, agree, agree_fresh, program_of, refusal

CALLS = (P, N, P / 100, torch.tensor([0.5, -0.1, 0.1]), torch.zeros(3))


def powers(x: Tensor) -> list[Tensor]:
    """As many tensors as the run says: none for `N`."""
    out = []
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        out.append(x)
    return out


# ---- growing
def grown_in_a_loop(x: Tensor) -> Any:
    return powers(x)


def grown_in_a_branch(x: Tensor) -> Any:
    a = [x]
    if x.sum() > 0:
        a.append(x + 1)
        a.append(x + 2)
    return a, len(a), a[-1], a[0]


def grown_by_plus(x: Tensor) -> Any:
    a = [x]
    for row in x:
        if row > 0:
            a = a + [row * x]  # noqa: RUF005 (as people write it)
            a += [x]
    return a


def extended(x: Tensor) -> Any:
    a = [x]
    a.extend(powers(x))
    a.extend(v * 2 for v in (x, x))
    b = list(a)
    b.append(x)
    return a, b, a.copy(), tuple(a)


def inserted(x: Tensor) -> Any:
    a = powers(x)
    a.insert(0, x)
    a.insert(1, -x)
    a.insert(-1, x * 0)
    return a


def numbers(x: Tensor) -> Any:
    counts = []
    sizes = []
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        counts.append(int(x.sum()))
        sizes.append(float(x.max()))
    return counts, sizes, sum(counts), sum(sizes, 1.0), torch.tensor(sizes)


def tuples(x: Tensor) -> Any:
    steps = []
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        steps.append((x.sum().item(), x, "step", (1, len(steps))))
    return steps


class Step(NamedTuple):
    value: Tensor
    number: int


@dataclass
class Record:
    value: Tensor
    name: str = "a"


def named(x: Tensor) -> Any:
    steps = [Step(x, 0)]
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        steps.append(Step(x, steps[-1].number + 1))
    return steps, steps[-1].value


def records(x: Tensor) -> Any:
    steps = []
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        steps.append(Record(x))
    return steps


def nested(x: Tensor) -> Any:
    groups = []
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        inner = [x]
        for row in x:
            if row > 1:
                inner.append(row * x)
        groups.append(inner)
    return groups, [len(group) for group in groups]


def inner_list_of_a_constant_one(x: Tensor) -> Any:
    groups: list[list[Tensor]] = [[], [x[0]]]
    for row in x:
        if row > 0:
            groups[0].append(row)
        else:
            groups[1].append(row)
    return groups


def buckets(x: Tensor) -> Any:
    found: dict[str, list[Tensor]] = {"low": [], "high": []}
    for row in x:
        if row > 0.2:
            found["high"].append(row)
        else:
            found["low"].append(row)
    return found, len(found["low"])


# ---- shrinking
def popped(x: Tensor) -> Any:
    a = [x, x + 1, x + 2]
    if x.sum() > 0:
        last = a.pop()
    else:
        last = a.pop(0)
    return last, a, len(a), a[-1]


def popped_while(x: Tensor) -> Any:
    stack = [x, x * 2, x * 3]
    total = x * 0
    while stack:
        top = stack.pop()
        total = total + top
        if total.sum() > 5:
            break
    return total, stack


def worked_off(x: Tensor) -> Any:
    """A work list that grows while it is worked off."""
    todo = [(x, 0)]
    done = []
    while todo:
        value, depth = todo.pop()
        if value.abs().sum() > 1 and depth < 3:
            todo.append((value / 2, depth + 1))
            todo.append((value / 4, depth + 1))
        else:
            done.append(value)
    return torch.stack(done), len(done)


def queue(x: Tensor) -> Any:
    todo = collections.deque([(x, 0)])
    order = []
    while todo:
        value, depth = todo.popleft()
        order.append(value.sum())
        if value.abs().sum() > 1 and depth < 2:
            todo.append((value / 2, depth + 1))
            todo.append((value / 4, depth + 1))
    return torch.stack(order)


def deleted(x: Tensor) -> Any:
    a = [x, *powers(x), x + 1]
    del a[0]
    del a[-1]
    return a


def removed(x: Tensor) -> Any:
    counts = [3]
    for row in x:
        if row > 0:
            counts.append(int(row * 10))
    counts.remove(3)
    return counts, 10 in counts, counts.count(10)


def cleared(x: Tensor) -> Any:
    a = powers(x)
    if len(a) > 3:
        a.clear()
    a.append(x)
    return a


# ---- reading
def indexed(x: Tensor) -> Any:
    a = [x, *powers(x)]
    middle = len(a) // 2
    return a[middle], a[0], a[-1], a[len(a) - 1], a[1:], a[:2], a[::-1], a[:], a[-1:]


def out_of_range(x: Tensor) -> Any:
    return powers(x)[0]


def popped_from_nothing(x: Tensor) -> Any:
    a = powers(x)
    a.pop()
    return a


def iterated(x: Tensor) -> Any:
    total = x * 0
    for value in powers(x):
        if value.sum() > 3:
            continue
        total = total + value
    for i, value in enumerate(powers(x)):
        total = total + i * value
    for left, right in zip(powers(x), powers(x * 2)):
        total = total + left * right
    for value in reversed(powers(x)):
        total = total * 0.5 + value
    return total


def comprehended(x: Tensor) -> Any:
    a = [v * 2 for v in powers(x)]
    b = [v for v in powers(x) if v.sum() > 1]
    c = [r for r in x if r > 0]
    d = [(i, r) for i, r in enumerate(x) if r > 0]
    return a, b, c, d, [i * 2 for i in range(int(x.abs().max() * 3))]


def truths(x: Tensor) -> Any:
    a = powers(x)
    kept = [r for r in x if r > 0]
    return (
        bool(a),
        not a,
        "some" if a else "none",
        x if kept and kept[0] > 0 else -x,
        len(a) > 2 and len(kept) < 3,
    )


def extremes(x: Tensor) -> Any:
    sums = [float(v.sum()) for v in powers(x)]
    best = max(sums, default=-1.0)
    least = min([*sums, 0.5])
    return best, least, any(s > 3 for s in sums), all(s > 0.5 for s in sums), sorted(sums, reverse=True)


def sorted_by(x: Tensor) -> Any:
    pairs = [(float(v.sum()), v) for v in powers(x)]
    pairs.sort(key=lambda pair: -pair[0])
    return pairs, sorted(pairs, key=lambda pair: pair[0])[:1]


def longest(x: Tensor) -> Any:
    values = [x, *powers(x)]
    return max(values, key=lambda v: v.sum())


# ---- writing
def written(x: Tensor) -> Any:
    a = [x, *powers(x)]
    a[0] = -x
    a[-1] = x * 7
    a[len(a) // 2] = x * 9
    a[0] += 1
    return a


def table(x: Tensor) -> Any:
    """A constant list written at an index that only the run knows."""
    best = [0] * 5
    seen = [x] * 3
    for i in range(int(x.abs().max()) + 1):
        best[i] = best[i - 1] + i
        seen[i % 3] = x * i
    return best, seen, len(best)


# ---- tensors
def known_lists_by_staged_numbers(x: Tensor) -> Any:
    n = int(x.abs().max()) % 3
    a = [x, x + 1, x + 2]
    b, c, d = list(a), [1, 2, 3], (4, 5, 6)
    taken = a.pop(n)
    b.insert(n, -x)
    del c[n]
    return taken, a, b, c, d[:n], d[n:], [7, 8, 9].index(n + 7), [n, n].count(n)


def stacked(x: Tensor) -> Any:
    a = [x, *powers(x)]
    return torch.stack(a), torch.stack(a, dim=1), torch.cat(a), torch.cat([x, *a, x]), torch.stack(a).sum(0)


def columns_of_any_length(x: Tensor) -> Any:
    parts = [x]
    while parts[-1].sum() < 4 and x.sum() > 0:
        parts.append(torch.cat([parts[-1], x]))
    return torch.cat(parts), [p.shape[0] for p in parts]


def empty_stack(x: Tensor) -> Any:
    return torch.stack(powers(x))


# ---- aliases
def two_names(x: Tensor) -> Any:
    a = b = [x]
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        a.append(x)
    return a, b, len(b), a is b


def in_a_dict(x: Tensor) -> Any:
    state = {"seen": [x], "count": 0}
    seen = state["seen"]
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        seen.append(x)
        state["count"] += 1
    return state, len(seen)


def argument(x: Tensor, out: list[Tensor]) -> Any:
    while x.abs().max() < 4 and x.sum() > 0:
        x = x * 2
        out.append(x)
    return len(out)


def helper_fills(out: list[Tensor], x: Tensor) -> None:
    if x.sum() > 0:
        out.append(x)


def filled_by_a_helper(x: Tensor) -> Any:
    out: list[Tensor] = []
    for row in x:
        helper_fills(out, row)
    helper_fills(out, x.max())
    return out


def closure(x: Tensor) -> Any:
    seen = []

    def note(value: Tensor) -> None:
        if value > 0:
            seen.append(value * 2)

    for row in x:
        note(row)
    return seen


def returned_from_either(x: Tensor) -> Any:
    if x.sum() > 0:
        return [x, x + 1]
    return [x]


def chosen(x: Tensor) -> Any:
    a = [x, x * 2] if x.sum() > 0 else [x]
    a.append(x * 3)
    return a, sum(a)


def mixed_sum(x: Tensor) -> Any:
    total: Any = 0
    for value in powers(x):
        total = total + value
    return total, sum(powers(x))


def unlike_elements(x: Tensor) -> Any:
    out: list[Any] = []
    for row in x:
        if row > 0:
            out.append(row)
        else:
            out.append((row, row))
    return out


@pytest.mark.parametrize(
    "function",
    [
        *(grown_in_a_loop, grown_in_a_branch, grown_by_plus, extended, inserted, numbers, tuples, named, records),
        *(nested, inner_list_of_a_constant_one, buckets, popped, popped_while, worked_off, queue, deleted, removed),
        *(cleared, indexed, out_of_range, popped_from_nothing, iterated, comprehended, truths, extremes, sorted_by),
        *(known_lists_by_staged_numbers, longest, written, table, stacked, columns_of_any_length, empty_stack),
        *(two_names, in_a_dict),
        *(filled_by_a_helper, closure, returned_from_either, chosen, mixed_sum, unlike_elements),
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


def test_of_an_argument() -> None:
    agree(argument, (P / 100, [P]), (N, [P]), (P / 10, [P]))


def test_gradients() -> None:
    def function(x: Tensor, w: Tensor) -> Tensor:
        kept = [x]
        while kept[-1].norm() < 4:
            kept.append(kept[-1] * w)
        return torch.stack(kept).sum() + kept[len(kept) // 2].prod()

    w = torch.tensor(1.5, requires_grad=True)
    agree(function, (P / 10, w), (P / 2, w), (P * 10, w))


def test_of_a_module() -> None:
    class Memory(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                self.kept.append(x)
            return x * len(self.kept)

    agree_fresh(Memory, P, N, P, N, programs=3)


def test_it_is_a_list_in_the_program() -> None:
    program = program_of(grown_in_a_loop, P)
    assert "build_list = [*a_list, mul]" in str(program)
    assert "-> [*f32[3]]" in str(program).splitlines()[0]


# ---- refused
def changes_an_element(x: Tensor) -> Any:
    groups, group = [], []
    for row in x:
        if row > 0:
            group = [row]
            groups.append(group)
    group.append(x[0])
    return groups


def changes_what_was_appended(x: Tensor) -> Any:
    groups = []
    group = [x]
    if x.sum() > 0:
        groups.append(group)
    group.append(x)
    return groups


def called_with_all(x: Tensor) -> Any:
    return torch.add(*powers(x))


def as_a_key(x: Tensor) -> Any:
    return {tuple(powers(x)): 1}


def a_set(x: Tensor) -> Any:
    return {int(r) for r in x if r > 0}


def printed_tuples(x: Tensor) -> Any:
    """The column behind these elements is not what they are."""
    out = []
    if x.sum() > 0:
        out.append((x * 2,))
    print(out)
    return len(out)


def holds_generators(x: Tensor) -> Any:
    out = []
    if x.sum() > 0:
        out.append(v for v in [x * 2])
    return [list(each) for each in out]


def holds_arrays(x: Tensor) -> Any:
    out = []
    if x.sum() > 0:
        out.append(x.numpy() * 2)
    return out


def in_torch(x: Tensor) -> Any:
    return torch.block_diag(powers(x))  # type: ignore[arg-type]  # the user's mistake


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (changes_an_element, "SG305"),
        (changes_what_was_appended, "SG305"),
        (called_with_all, "SG210"),
        (as_a_key, "SG210"),
        (in_torch, "SG210"),
        (printed_tuples, "SG210"),
        (holds_generators, "SG203"),
        (holds_arrays, "SG203"),
    ],
)
def test_refused(function: Any, code: str) -> None:
    error = refusal(function, P)
    assert error.reason.code == code
    assert error.location is not None
    assert error.location.file == __file__


def test_a_library_never_sees_a_spread() -> None:
    def function(x: Tensor) -> Any:
        return rotate_left(powers(x), 1)

    agree(function, P / 100, N)


# ---- as often as the run says
def repeated(x: Tensor) -> Any:
    n = int((x > 0).sum())
    zeros, pairs, none = [0] * n, ((x, 1.5),) * n, [] * n
    if n > 1:
        zeros[1] = 7
    return zeros, pairs, none, n * [x], len(zeros), [1, 2] * (n - 5)


def grown_tuple(x: Tensor) -> Any:
    t: tuple[Tensor, ...] = ()
    while 0 < x.abs().sum() < 30:
        t = (*t, x)
        x = x * 2
    for value in t:
        x = x + value
    return t, len(t), x, t[:1]


def one_object_often(x: Tensor) -> Any:
    return [[]] * int((x > 0).sum())


@pytest.mark.parametrize("function", [repeated, grown_tuple])
def test_as_often_as_the_run_says(function: Any) -> None:
    agree(function, *CALLS)


def test_one_object_often() -> None:
    assert refusal(one_object_often, P).reason.code == "SG210"


def test_a_set_of_numbers_of_the_run() -> None:
    agree(a_set, P, -P)
