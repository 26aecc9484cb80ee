"""Values without a join: what is done with them is done for each of the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.case import Case
from tests.cases.harness import check_static

UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


def rank(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x.unsqueeze(0)
    z = 1 + y * 2 - y.sum(dim=-1, keepdim=True)
    return z, z.shape, z.dim(), -z, z[0], z @ z.T if z.dim() > 1 else z


def dtype(x: Tensor) -> Any:
    y = x.long() if x.sum() > 0 else x
    return y + 1, torch.cat([y, y]), y.dtype == torch.int64, y.sum().item(), torch.stack([x, x]) + y


def both(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x.unsqueeze(0)
    z = x if x[0] > -5 else x.unsqueeze(-1)
    return (y + z).shape, [y, z]


def of_three(x: Tensor) -> Any:
    y = x[None] + 1
    for _ in range(2):
        if y.norm() <= 6:
            return y
        y = y.mean(0)
    return y + y.norm()


def same_flag(x: Tensor) -> Any:
    if x.sum() > 0:
        y, z = x, x.long()
    else:
        y, z = x.unsqueeze(0), x.unsqueeze(1)
    return (y * z).sum(), y + z


def length(x: Tensor) -> Any:
    values = (x, x + 1) if x.sum() > 0 else (x,)
    total = x
    for value in values:
        if value[0] > 1:
            total = total * 2
        total = total + value
    return total, len(values), values[-1], [v * 2 for v in values], x[0] in values[0]


def keys(x: Tensor) -> Any:
    name = "a" if x.sum() > 0 else "b"
    table = {"a": x, "b": x * 2}
    table[name] = table[name] + 1
    return table["a"], table[name], table.get(name), name == "a", name


def functions(x: Tensor) -> Any:
    def twice(v: Tensor) -> Tensor:
        return v * 2 if v[0] > 1 else v

    chosen = twice if x.sum() > 0 else torch.sin
    return chosen(x), chosen(x + 1)


def kinds(x: Tensor) -> Any:
    y = 3 if x.sum() > 0 else (x, x)
    return isinstance(y, int), type(y) is int, bool(y)


def identity(x: Tensor) -> Any:
    y = x + 1
    z = x if x.sum() > 0 else y
    flag = bool(x.sum() > 0)
    numbers, others = [1], [2]
    chosen = numbers if x.sum() > 0 else others
    return z is x, z is y, z is not y, flag is True, flag is not True, chosen is numbers, chosen is others


def in_place(x: Tensor) -> Any:
    y = x.clone() if x.sum() > 0 else x.unsqueeze(0).clone()
    y += 1
    y[0] = 5
    y.mul_(2)
    return y


@dataclass
class Box:
    value: Tensor

    def doubled(self) -> Tensor:
        return self.value * 2 if self.value[0] > 0 else self.value


class Other(Box):
    def doubled(self) -> Tensor:
        return self.value * 3


def objects(x: Tensor) -> Any:
    box = Box(x) if x.sum() > 0 else Other(x)
    return box.doubled(), box.value


def in_a_loop(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x.unsqueeze(0)
    total = x.sum()
    while total < 20:
        total = total + y.abs().max() + 1
    return total


def taken_apart(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x.unsqueeze(0)
    z = x if x.sum() > 0 else x.long()
    values = (x, x + 1) if x.sum() > 0 else (x,)
    mode = "ab" if x.sum() > 0 else "bc"
    (first, *_), (second, *_), (third, *rest), (_, letter) = y, z, values, mode
    return first * 2, second * 2, third, len(rest), letter


def hashed(x: Tensor) -> Any:
    y = "a" if x.sum() > 0 else "b"
    return len({y, "a"})


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(2, 1)})

    def forward(self, x: Tensor) -> Tensor:
        return self.heads["a" if x.sum() > 0 else "b"](x) + 1


FUNCTIONS = [
    rank, dtype, both, of_three, same_flag, length, keys, functions, kinds, identity, in_place, objects, in_a_loop,
    taken_apart, hashed,
]  # fmt: skip


@pytest.mark.parametrize("function", [*FUNCTIONS, Chosen], ids=lambda f: f.__name__)
def test_the_rest_is_done_for_each(function: Callable[..., Any]) -> None:
    make = Chosen if function is Chosen else lambda: function
    calls = [(UP.clone(),), (DOWN.clone(),), (UP * 3,), (DOWN * 4,)]
    check_static(Case(function.__name__, make, calls, grad=function in (rank, same_flag, Chosen)))


def test_what_wants_one_plain_answer_is_refused() -> None:
    @sg.to_static(backend="eager")
    def unpacked(x: Tensor) -> Tensor:
        values = (x, x + 1) if x.sum() > 0 else (x,)
        return torch.stack([*values])

    with pytest.raises(sg.CaptureError, match="a tuple of 2 and a tuple of 1"):
        unpacked(UP)


def test_a_chain_is_told_apart_at_any_depth() -> None:
    """Of two sides one is plain and the other goes on: each is one more branch, and nothing is doubled."""

    def many(x: Tensor) -> Any:
        total = x
        for i in range(6):
            y = x if x[0] > i else x.unsqueeze(0)
            total = total + y
        return total

    static = sg.to_static(many, backend="eager")
    for x in (UP, DOWN, UP * 3, UP * 9):
        assert repr(static(x)) == repr(many(x))


def test_splits_are_limited() -> None:
    @sg.to_static(backend="eager")
    def doubling(x: Tensor) -> Any:
        values: Any = (x,)
        for i in range(6):
            values = (*values, x) if x[0] > i else (x, *values, x)
        return values

    with pytest.raises(sg.CaptureError, match="a tuple of 2 and a tuple of 3"):
        doubling(UP)


# ---- order
def by_key(x: Tensor) -> Any:
    rows = [(x[i] * -1, i) for i in range(len(x))]
    rows.sort(key=lambda row: row[0], reverse=True)
    return rows, sorted([v.item() for v in x]), sorted([x[0], x[1]], key=lambda v: v.abs())


@pytest.mark.parametrize("first", [0.0, float("nan")])
def test_the_order_is_pythons(first: float) -> None:
    calls = [(torch.tensor([first, *rest]),) for rest in ([3.0, 1.0, 2.0], [1.0, 1.0, -4.0], [float("nan"), 2.0, 0.0])]
    check_static(Case("by_key", lambda: by_key, calls, grad=False))


# ---- what must not go wrong silently
class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.table: dict[str, Any] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        self.table[key] = value


def alias_written_afterwards(x: Tensor) -> Any:
    a, b = [1], [2]
    y = a if x.sum() > 0 else b
    a[0] = 7
    return y


def container_changed_in_place(x: Tensor) -> Any:
    a, b = [x], (x,)
    y: Any = a if x.sum() > 0 else b
    y += type(y)((1,))
    return a, y


def behind_the_journal(x: Tensor) -> Any:
    box = Plain(x)
    if x.sum() > 0:
        box.__dict__["value"] = x * 2
    return box.value


def own_setitem(x: Tensor) -> Any:
    box = Plain(x)
    if x.sum() > 0:
        box["a"] = x * 2
    else:
        box["a"] = x * 3
    return box.table["a"]


@pytest.mark.parametrize("function", [behind_the_journal, own_setitem, alias_written_afterwards])
@pytest.mark.parametrize("order", [(UP, DOWN), (DOWN, UP)])
def test_right_on_both_paths(function: Callable[..., Any], order: tuple[Tensor, Tensor]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in order:
        assert repr(static(x)) == repr(function(x))


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (container_changed_in_place, "SG201"),
    ],
)
@pytest.mark.parametrize("x", [UP, DOWN])
def test_refused_on_both_paths(function: Callable[..., Any], code: str, x: Tensor) -> None:
    with pytest.raises(sg.CaptureError) as refused:
        sg.to_static(function, backend="eager")(x)
    assert refused.value.reason.code == code
