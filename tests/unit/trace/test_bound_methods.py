"""Methods that are bound to an object: returned, kept behind a break, and passed by the caller."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    def value(self) -> int:
        return self.count


def append_of(values: list[Any], x: Tensor) -> Any:
    return values.append, x + 1


def test_a_method_of_a_callers_list_is_bound_to_each_calls_own() -> None:
    static = sg.to_static(append_of, backend="eager")
    for _ in range(2):
        values = [1, 2]
        append, _ = static(values, torch.ones(2))
        append(3)
        assert values == [1, 2, 3]
    assert len(static.programs) == 1


def test_methods_of_dicts() -> None:
    def views(table: dict[str, int], x: Tensor) -> Any:
        return table.get, table.items, x

    static = sg.to_static(views, backend="eager")
    for value in (1, 1):
        table = {"a": value}
        get, items, _ = static(table, torch.ones(2))
        table["b"] = 7
        assert get("b") == 7
        assert list(items()) == [("a", 1), ("b", 7)]


def test_a_method_of_a_list_that_is_made_is_bound_to_the_one_returned() -> None:
    @sg.to_static(backend="eager")
    def collected(x: Tensor) -> Any:
        values = [x.sum().item()]
        return values.append, values, values.append

    append, values, again = collected(torch.ones(2))
    append(1)
    again(2)
    assert values == [2.0, 1, 2]


def test_methods_of_tensors_that_the_program_computes() -> None:
    @sg.to_static(backend="eager")
    def of_tensors(x: Tensor) -> Any:
        y = x + 1
        return y.sum, x.mean

    for value in (0.0, 3.0):
        total, mean = of_tensors(torch.full((2,), value))
        assert total().item() == 2 * value + 2
        assert mean().item() == value


def test_methods_of_objects() -> None:
    def made(x: Tensor) -> Any:
        counter = Counter(0)
        counter.count = x.sum().item()
        return counter.value

    def given(counter: Counter, x: Tensor) -> Any:
        return counter.value, x + 1

    static = sg.to_static(made, backend="eager")
    assert [static(torch.full((2,), value))() for value in (1.0, 2.0)] == [2.0, 4.0]
    static = sg.to_static(given, backend="eager")
    for start in (1, 2):
        counter = Counter(start)
        value, _ = static(counter, torch.ones(2))
        assert value.__self__ is counter
        assert value() == start


def test_methods_in_files(tmp_path: Path) -> None:
    static = sg.to_static(append_of, backend="eager")
    sg.save(static, tmp_path / "append.py", args=([1, 2], torch.ones(2)))
    values = [1, 2]
    append, _ = runpy.run_path(str(tmp_path / "append.py"))["append_of"](values, torch.ones(2))
    append(3)
    assert values == [1, 2, 3]
    with pytest.raises(ExportError, match="which a file cannot hold"):
        sg.save(static, tmp_path / "append.pt2", args=([1, 2], torch.ones(2)))


def test_what_is_behind_a_method_is_told_apart() -> None:
    """The list that a method writes to, and another argument, are one list in some calls and two in others."""

    def writes(append: Any, values: list[Any], x: Tensor) -> Tensor:
        append(x.sum().item())
        values.append(1)
        return x + len(values)

    static = sg.to_static(writes, backend="eager")
    for is_one in (True, False, True, False):
        told = []
        for function in (writes, static):
            values: list[Any] = [1, 2]
            others: list[Any] = values if is_one else [1, 2]
            told.append((function(others.append, values, torch.ones(2)).tolist(), values, others))
        assert told[0] == told[1]
    assert len(static.programs) == 2


def test_a_method_of_a_list_of_any_length_is_one_program() -> None:
    @sg.to_static(backend="eager")
    def log(append: Any, x: Tensor) -> Tensor:
        append(x.sum().item())
        return x + 1

    for length in range(4):
        values: list[Any] = [1] * length
        log(values.append, torch.ones(2))
        assert values == [1] * length + [2.0]
    assert len(log.programs) == 1


def test_a_method_is_kept_behind_a_break(capsys: pytest.CaptureFixture[str]) -> None:
    def kept(values: list[Any], x: Tensor) -> Any:
        add = values.append
        print("before", x.sum().item())
        add(3)
        values.append(x.mean().item())
        values.sort()
        values[0] = -1
        return values, x

    static = sg.to_static(kept, full_graph=False, strict=True, backend="eager")
    for value in (0.5, 2.0, 5.0):
        expected, actual = [1, 2], [1, 2]
        kept(expected, torch.full((2,), value))
        shown = capsys.readouterr().out
        assert static(actual, torch.full((2,), value))[0] is actual
        assert actual == expected
        assert capsys.readouterr().out == shown
