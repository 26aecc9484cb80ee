"""Lists of tensors whose sizes differ, as two tensors: each operation against Python's own."""

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
from stillgraph.passes.lists.ragged import elements_of, flatten_ragged_lists
from stillgraph.passes.lists.ragged_operations import layout_of
from stillgraph.passes.regions.regions import all_regions
from stillgraph.program.flattening import sizes_of, values_of
from stillgraph.program.types import ListType, TensorType
from stillgraph.program.verify import verify
from tests.sampling import few
from tests.unit.passes.captured import run

X = torch.tensor([1.0, -2.0, 3.0, 0.5, 7.0, 2.5])
ROWS = torch.arange(12.0).reshape(3, 4) - 5


def above(x: Tensor) -> list[Tensor]:
    """As many elements as ``x`` has rows with a positive first value, of other sizes each."""
    found = []
    for row in x:
        if row[0] > 0:
            found.append(row[row > row[0]])
    return found


def joined(x: Tensor) -> tuple[Tensor, int]:
    a = [*above(x), x[0]]
    return torch.cat(a), len(a)


def at(x: Tensor, index: Tensor) -> Tensor:
    a = [*above(x), x[0], x[1, :2]]
    return torch.cat([a[int(index)], a[0]])


def popped(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a = [*above(x), x[0], x[1, :2]]
    return a.pop(), a.pop(0), torch.cat([x[0], *a])


def popped_in_the_middle(x: Tensor, index: Tensor) -> Tensor:
    a = [*above(x), x[0], x[1, :2]]
    a.pop(int(index))
    return torch.cat(a)


def deleted(x: Tensor, index: Tensor) -> Tensor:
    a = [*above(x), x[0], x[1, :2]]
    del a[int(index)]
    del a[2:]
    return torch.cat(a)


def inserted(x: Tensor, index: Tensor) -> Tensor:
    a = above(x)
    a.insert(int(index), x[2] * 10)
    return torch.cat(a)


def replaced(x: Tensor, index: Tensor) -> Tensor:
    a = [*above(x), x[0]]
    a[int(index)] = x[2] * 10
    a[-1] = x[1, :3]
    return torch.cat(a)


def rearranged(x: Tensor, count: Tensor) -> Tensor:
    a = [*above(x), x[0]]
    a.extend(above(x * 2))
    b = a[::-1] + a[:2] + a[-1:] + a[1:] * int(count)
    return torch.cat(b)


def by_length(x: Tensor) -> Tensor:
    return torch.cat(sorted([*above(x), x[0], x[0, :1]], key=lambda t: t.shape[0]))


def iterated(x: Tensor) -> tuple[Tensor, int]:
    total, longest = torch.zeros(()), 0
    for i, part in enumerate([*above(x), x[0]]):
        total = total + (i + 1) * part.sum()
        if part.shape[0] > longest:
            longest = part.shape[0]
    return total, longest


def halved(x: Tensor) -> Tensor:
    work, total = [x], torch.zeros(())
    while work:
        part = work.pop()
        if part.shape[0] > 1:
            work += [part[: part.shape[0] // 2], part[part.shape[0] // 2 :]]
        else:
            total = total * 2 + part.sum()
    return total


def on_one_path(x: Tensor) -> Tensor:
    a = above(x)
    if x.sum() > 0:
        a.append(x[0])
    else:
        a = [x[0, :1] for _ in range(int(x[0].abs().sum()) % 3)]
        a.append(x[0])
    return torch.cat(a)


def of_fixed_sizes_before(x: Tensor) -> Tensor:
    a = [row for row in x if row[0] > 0]
    for row in x:
        a.append(row[row > 2])
    return torch.cat(a)


def rows_kept(x: Tensor) -> tuple[Tensor, Tensor, int]:
    kept = [x[:2]]
    for limit in range(int(x.max()) % 7):
        kept.append(x[x[:, 0] > limit])
    return torch.cat(kept), kept[-1], len(kept)


def columns_kept(x: Tensor) -> tuple[Tensor, Tensor]:
    kept = [x[:, :1]]
    for limit in range(int(x.max()) % 7):
        kept.append(x[:, x[-1] > limit])
    return torch.cat(kept, dim=1), kept[-1]


def blocks_kept(x: Tensor) -> tuple[Tensor, Tensor]:
    kept = [x[:1, :1]]
    for limit in range(int(x.max()) % 7):
        kept.append(x[x[:, 0] > limit][:, x[-1] > limit])
    return kept[-1], kept[0]


def joined_along_both(x: Tensor) -> tuple[Tensor, Tensor]:
    wide, high = [], []
    for limit in range(int(x.max()) % 7 + 1):
        part = x[:, x[-1] > limit]
        wide.append(part[part[:, 0] > 0] if part.shape[1] > 9 else part)
        high.append(part.T[:, x[:, 0] > -99])
    return torch.cat(wide, dim=-1), torch.cat(high)


def stacked(x: Tensor) -> Tensor:
    return torch.stack([x[0][x[0] > x[0].min() + 1] * i for i in range(int(x.max()) % 3 + 2)])


def stacked_behind(x: Tensor) -> Tensor:
    parts = [x[:1]] if x.sum() > 0 else [x[x[:, 0] > 1]]
    for i in range(int(x.max()) % 3):
        parts.append(parts[0] + i)
    return torch.stack(parts, dim=-1)


def nested(x: Tensor, count: Tensor) -> Tensor:
    outer = [x[0]]
    for i in range(int(count)):
        inner = [x[0, :1]]
        while inner[-1].sum() < 5:
            inner.append(torch.cat([inner[-1], x[1, :1].abs() + i + 1]))
        outer.append(torch.cat(inner))
    return torch.cat(outer)


_PLAIN = [(ROWS,), (ROWS + 9,), (-ROWS,), (-ROWS.abs() - 1,)]
_AT = [(x, torch.tensor(i)) for x in (ROWS, ROWS + 9) for i in (0, 1, -1, -2)]
_COUNTED = [(x, torch.tensor(i)) for x in (ROWS, -ROWS.abs() - 1) for i in (0, 1, 3)]
OPERATIONS = [
    (joined, _PLAIN),
    (at, _AT),
    (popped, _PLAIN),
    (popped_in_the_middle, _AT),
    (deleted, _AT),
    (inserted, [*_AT, (ROWS, torch.tensor(9)), (-ROWS.abs() - 1, torch.tensor(-9))]),
    (replaced, _AT),
    (rearranged, _COUNTED),
    (by_length, _PLAIN),
    (iterated, _PLAIN),
    (halved, [(X,), (-X,), (X * 3,)]),
    (on_one_path, _PLAIN),
    (of_fixed_sizes_before, _PLAIN),
    (rows_kept, _PLAIN),
    (columns_kept, _PLAIN),
    (blocks_kept, _PLAIN),
    (joined_along_both, _PLAIN),
    (stacked, _PLAIN),
    (nested, [(ROWS + 9, torch.tensor(3)), (ROWS + 20, torch.tensor(0)), (ROWS + 10, torch.tensor(1))]),
    (stacked_behind, _PLAIN),
]


@pytest.mark.parametrize(("function", "calls"), few(OPERATIONS, 2))
def test_an_operation_gives_what_python_gives(function: Callable[..., Any], calls: list[tuple[Tensor, ...]]) -> None:
    program = sg.export(function, calls[0])
    alone, lowered = flatten_ragged_lists(program), pipeline.run(program)
    for each in (alone, lowered):
        verify(each)
        values = [node.meta.get("val") for module in all_regions(each.graph) for node in module.graph.nodes]
        assert not any(layout_of(value) for value in values)
        for call in calls:
            want = function(*call)
            got = run(each, call)
            want = [*want] if isinstance(want, tuple) else [want]
            torch.testing.assert_close(
                [torch.as_tensor(value) for value in got], [torch.as_tensor(value) for value in want], check_dtype=False
            )


@pytest.mark.parametrize(
    ("function", "call", "text"),
    [
        (lambda x: above(x).pop(), (-ROWS.abs() - 1,), "IndexError: pop from empty list"),
        (popped_in_the_middle, (ROWS, torch.tensor(9)), "IndexError: pop index out of range"),
        (deleted, (ROWS, torch.tensor(-9)), "IndexError: list assignment index out of range"),
        (replaced, (ROWS, torch.tensor(9)), "IndexError: list assignment index out of range"),
        (at, (ROWS, torch.tensor(9)), "IndexError: list index out of range"),
        (lambda x: torch.stack(above(x)), (-ROWS.abs() - 1,), "RuntimeError: stack expects a non-empty TensorList"),
    ],
)
def test_what_python_raises_is_asserted(function: Callable[..., Any], call: tuple[Tensor, ...], text: str) -> None:
    kind, _, message = text.partition(": ")
    with pytest.raises(getattr(builtins, kind), match=message):
        function(*call)
    program = sg.export(function, (ROWS, *(torch.tensor(0) for _ in call[1:])))
    for each in (flatten_ragged_lists(program), pipeline.run(program)):
        with pytest.raises((RuntimeError, getattr(builtins, kind)), match=message):
            run(each, call)


def test_tensors_whose_sizes_differ_where_they_have_to_be_equal() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.stack([*above(x), x[0]])

    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        function(ROWS)
    lowered = pipeline.run(sg.export(function, (-ROWS.abs() - 1,)))
    torch.testing.assert_close(run(lowered, (-ROWS.abs() - 1,)), [function(-ROWS.abs() - 1)])
    with pytest.raises(RuntimeError, match="the sizes of the tensors in a list differ where they have to be equal"):
        run(lowered, (ROWS,))


# ---- refusals
def written(x: Tensor) -> Tensor:
    a = above(x)
    a.append(x[0] * 2)
    a[-1].add_(1)
    return torch.cat([x[0], *a])


def looked_for(x: Tensor) -> bool:
    return x[0] in above(x)


def joined_behind(x: Tensor) -> Tensor:
    return torch.cat([x[x[:, 0] > limit] for limit in range(int(x.max()) % 3 + 1)], dim=1)


def list_of_lists(x: Tensor) -> list[list[Tensor]]:
    found = []
    for row in x:
        if row[0] > 0:
            found.append([row[row > row[0]], row])
            x = x * 2
    return found


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (list_of_lists, "a list of lists of tensors whose sizes differ"),
        (written, "written in place that is an element of a list"),
        (looked_for, "contains of a list of tensors whose sizes differ"),
        (joined_behind, "along a dimension behind those that differ"),
    ],
)
def test_what_has_no_form_is_refused_with_the_line(function: Callable[..., Any], text: str) -> None:
    program = sg.export(function, (ROWS,))
    with pytest.raises(ExportError, match=text) as caught:
        pipeline.run(program)
    assert caught.value.reason.code == "SG402"
    assert "test_ragged.py" in str(caught.value)


# ---- the representation
@pytest.mark.parametrize(
    ("shape", "lead", "tail"),
    [((None,), 1, ()), ((None, 4), 1, (4,)), ((3, None), 2, ()), ((3, None, 2), 2, (2,)), ((3, 4), None, ())],
)
def test_the_layout_of_a_list(shape: tuple[Any, ...], lead: int | None, tail: tuple[int, ...]) -> None:
    layout = layout_of(ListType(TensorType(torch.float32, torch.device("cpu"), shape)))
    assert (layout and layout.lead) == lead
    assert layout is None or layout.row.shape == tail


@pytest.mark.parametrize("sizes", [[], [2], [3, 0, 1]])
@pytest.mark.parametrize("lead", [1, 2])
def test_two_tensors_and_back(sizes: list[int], lead: int) -> None:
    items = [torch.randn(size, 3) if lead == 1 else torch.randn(2, size, 3) for size in sizes]
    values = values_of(items, lead, (3,), dtype=torch.float32, device=torch.device("cpu"))
    rows = sizes_of(items, lead)
    assert values.shape == (sum(sizes) * (1 if lead == 1 else 2), 3)
    assert rows.shape == (len(sizes), lead)
    torch.testing.assert_close(elements_of(values, rows), items)
