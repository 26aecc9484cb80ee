"""Lists of which only the run knows the length, as tensors: each operation against Python's own."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.lists.lists import items_of, lists_to_tensors, rows_of
from stillgraph.passes.regions.regions import all_regions
from stillgraph.passes.state.memory import flow_of
from stillgraph.program.types import ListType, NumberType, TensorType
from stillgraph.program.verify import verify
from tests.unit.passes.captured import run

X = torch.tensor([[1.0, 2.0], [-3.0, 4.0], [5.0, 6.0]])


def rows(x: Tensor) -> list[Tensor]:
    """As many rows as have a positive sum."""
    return [row for row in x if row.sum() > 0]


def numbers(x: Tensor) -> list[Any]:
    """The whole parts of the positive elements."""
    found = []
    for value in x.flatten():
        if value > 0:
            found.append(int(value))
    return found


def popped(x: Tensor) -> Tensor:
    a = rows(x)
    return a.pop() * 2 + a.pop(0)


def popped_in_the_middle(x: Tensor, at: Tensor) -> Tensor:
    a = [*rows(x), x[0], x[1]]
    a.pop(int(at))
    return torch.stack(a)


def deleted(x: Tensor, at: Tensor) -> Tensor:
    a = [*rows(x), x[0], x[1]]
    del a[int(at)]
    del a[2:]
    return torch.stack(a)


def deleted_from_the_front(x: Tensor) -> Tensor:
    a = [*rows(x), x[0], x[1]]
    del a[:2]
    return torch.stack([*a, x[2]])


def inserted(x: Tensor, at: Tensor) -> Tensor:
    a = rows(x)
    a.insert(int(at), x[2] * 10)
    return torch.stack(a)


def replaced(x: Tensor, at: Tensor) -> Tensor:
    a = [*rows(x), x[0]]
    a[int(at)] = x[2] * 10
    a[-1] = x[1]
    return torch.stack(a)


def sliced(x: Tensor) -> Tensor:
    a = [*rows(x), x[0]]
    return torch.stack(a[::-1] + a[:2] + a[-1:])


def at(x: Tensor, index: Tensor) -> Tensor:
    a = [*rows(x), x[0]]
    return a[int(index)] + a[0]


def repeated(x: Tensor, count: Tensor) -> Tensor:
    return torch.stack([x[0], *(rows(x) * int(count))])


def counted(x: Tensor) -> tuple[int, bool, int, int]:
    a = numbers(x)
    return len(a), 4 in a, a.count(1), sum(a)


def found(x: Tensor) -> tuple[int, Tensor]:
    a = [*numbers(x), 7]
    where = a.index(7)
    a.remove(7)
    return where, torch.tensor([*a, 3])


def joined(x: Tensor) -> tuple[Tensor, Tensor]:
    a = [row.unsqueeze(0) for row in x if row.sum() > 0] + [x[:1]]
    return torch.cat(a), torch.cat(a, dim=1)


def stacked_behind(x: Tensor) -> Tensor:
    return torch.stack([*rows(x), x[0]], dim=-1)


def nested(x: Tensor, count: Tensor) -> Tensor:
    outer = []
    for i in range(int(count)):
        inner = [x[0]]
        while inner[-1].sum() < 5:
            inner.append(inner[-1] + i + 1)
        outer.append(torch.stack(inner).sum(0))
    return torch.stack([*outer, x[0]])


_PLAIN = [(x,) for x in (X, X.abs(), X * torch.tensor([[1.0], [1.0], [-1.0]]))]
_AT = [(x, torch.tensor(i)) for x in (X, X.abs()) for i in (0, 1, -1, -2)]


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (popped, _PLAIN[:2]),
        (popped_in_the_middle, _AT),
        (deleted, _AT),
        (deleted_from_the_front, _PLAIN),
        (inserted, [*_AT, (X, torch.tensor(9)), (-X.abs(), torch.tensor(-9))]),
        (replaced, _AT),
        (sliced, _PLAIN),
        (at, _AT),
        (repeated, [*_AT, (-X.abs(), torch.tensor(2))]),
        (counted, _PLAIN),
        (found, _PLAIN),
        (joined, [*_PLAIN, (-X.abs(),)]),
        (stacked_behind, [*_PLAIN, (-X.abs(),)]),
        (nested, [(X, torch.tensor(3)), (X * 2, torch.tensor(0)), (X, torch.tensor(1))]),
    ],
)
def test_an_operation_gives_what_python_gives(function: Callable[..., Any], calls: list[tuple[Tensor, ...]]) -> None:
    program = sg.export(function, calls[0])
    lowered = pipeline.run(program)
    verify(lowered)
    values = [node.meta.get("val") for module in all_regions(lowered.graph) for node in module.graph.nodes]
    assert not any(isinstance(value, ListType) for value in values)
    for call in calls:
        want = function(*call)
        got = run(lowered, call)
        torch.testing.assert_close(got, list(want) if isinstance(want, tuple) else [want])


@pytest.mark.parametrize(
    ("function", "call", "text"),
    [
        (popped, (-X.abs(),), "IndexError: pop from empty list"),
        (popped_in_the_middle, (X, torch.tensor(9)), "IndexError: pop index out of range"),
        (deleted, (X, torch.tensor(-9)), "IndexError: list assignment index out of range"),
        (replaced, (X, torch.tensor(9)), "IndexError: list assignment index out of range"),
        (at, (X, torch.tensor(9)), "IndexError: list index out of range"),
        (lambda x: torch.stack(rows(x)), (-X.abs(),), "RuntimeError: stack expects a non-empty TensorList"),
    ],
)
def test_what_python_raises_is_asserted(function: Callable[..., Any], call: tuple[Tensor, ...], text: str) -> None:
    kind, _, message = text.partition(": ")
    with pytest.raises(getattr(builtins, kind), match=message):
        function(*call)
    program = sg.export(function, (X, *(torch.tensor(0) for _ in call[1:])))
    with pytest.raises(RuntimeError, match=text):
        run(pipeline.run(program), call)


def test_the_pass_alone_raises_as_python_does() -> None:
    lowered = lists_to_tensors(sg.export(at, (X, torch.tensor(0))))
    torch.testing.assert_close(run(lowered, (X, torch.tensor(-1)))[0], at(X, torch.tensor(-1)))
    with pytest.raises(IndexError, match="list index out of range"):
        run(lowered, (X, torch.tensor(9)))


# ---- refusals
def of_lists(x: Tensor) -> int:
    outer = []
    for _ in range(int(x[0, 0])):
        outer.append(rows(x))
    return len(outer)


def written_afterwards(x: Tensor) -> Tensor:
    a = []
    total = torch.zeros(2)
    for row in x:
        total += row
        if row.sum() > 0:
            a.append(total)
    return torch.stack(a)


def written_as_an_element(x: Tensor) -> Tensor:
    y = x * 2
    a = [y[0], *rows(x)]
    a[-1].add_(1)
    return y + torch.stack(a).sum()


def written_in_the_next_iteration(x: Tensor) -> Tensor:
    a = [x[0]]
    y = x[0] * 1
    while y.sum() < 20:
        y.add_(1)
        y = y * 2
        a.append(y)
    return torch.stack(a)


def looked_for(x: Tensor) -> bool:
    return x[0] in rows(x[:, :1])


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (of_lists, "list of lists"),
        (looked_for, "a tensor is looked for in a list"),
        (written_afterwards, "written in place that is an element of a list"),
        (written_as_an_element, "written in place that is an element of a list"),
        (written_in_the_next_iteration, "written in place that is an element of a list"),
    ],
)
def test_what_has_no_form_is_refused_with_the_line(function: Callable[..., Any], text: str) -> None:
    program = sg.export(function, (X,))
    with pytest.raises(ExportError, match=text) as caught:
        pipeline.run(program)
    assert caught.value.reason.code == "SG402"
    assert "test_lists.py" in str(caught.value)


def test_copies_may_be_written() -> None:
    def totals(x: Tensor) -> Tensor:
        a = [x[0]]
        total = torch.zeros(2)
        for row in x:
            total += row
            if row.sum() > 0:
                a.append(total.clone())
        return torch.stack(a)

    program = sg.export(totals, (X,))
    assert flow_of(program.graph).written
    assert flow_of(program.graph).written_in_lists() is None
    lowered = pipeline.run(program)
    for x in (X, -X, X.abs()):
        torch.testing.assert_close(run(lowered, (x,))[0], totals(x))


# ---- the representation
@pytest.mark.parametrize("items", [[], [1], [3, 1, 2]])
def test_numbers_as_rows_and_back(items: list[int]) -> None:
    made = rows_of(items, ListType(NumberType(int)))
    assert made.dtype == torch.int64
    assert items_of(made, int) == items


def test_tensors_as_rows_and_back() -> None:
    type_ = ListType(TensorType(torch.float32, torch.device("cpu"), (2,)))
    torch.testing.assert_close(items_of(rows_of(list(X), type_)), list(X))
    assert rows_of([], type_).shape == (0, 2)
