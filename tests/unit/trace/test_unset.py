# ruff: noqa: F841 (the functions are about variables that may have no value)
"""A variable that the path taken did not assign raises where it is read: before what follows, into handlers there."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.program.interpreter import interpret
from stillgraph.runtime.native.results import compile_result
from tests.front_ends import through_bytecode
from tests.importing import loaded
from tests.unit.trace.unset_functions import FUNCTIONS, LESS, ONE, ONES, ZEROS, handed_out_in_one_arm, outcome, static


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_raises_where_it_is_read(
    function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    order = (LESS, ONES, LESS) if way == "segments" else (ONES, LESS)
    expected = [outcome(function, x, capsys) for x in order]
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        found = static(function, way)
        assert [outcome(found, x, capsys) for x in order] == expected


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS[:6], ids=lambda function: function.__name__)
def test_the_other_arm_does_not_look_at_it(
    function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        found = static(function, way)
        for x in (ONES, ZEROS, ONE, ONES * 0.2, LESS):
            assert outcome(found, x, capsys) == outcome(function, x, capsys)


def twice(x):
    if x.sum() > 0:
        t = [x]
    if x[0] > 0.5:
        return t, t
    if x[1] > 0.5:
        return {"t": t}, t
    return x, x


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
def test_two_results_are_one_container(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        found = static(twice, way)
        first, second = found(ONES)
        assert first is second
        first, second = found(torch.tensor([0.0, 1.0, 0.0]))
        assert first["t"] is second
        for x in (ZEROS, ONE, torch.tensor([0.0, 1.0, -3.0])):
            assert outcome(found, x, capsys) == outcome(twice, x, capsys)


G = None


def left_in_a_global(x):
    global G
    if x.sum() > 0:
        t = [x]
    G = t if x[0] > 0.5 else "text"


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
def test_a_global_gets_it_where_it_is_set(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    def told(function: Callable[..., Any], x: torch.Tensor) -> Any:
        global G
        G = 7
        return outcome(function, x, capsys), repr(G)

    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        found = static(left_in_a_global, way)
        for x in (ONES, ZEROS, ONE, LESS):
            assert told(found, x) == told(left_in_a_global, x)


@pytest.mark.parametrize("x", [ONES, ZEROS, LESS], ids=str)
def test_the_interpreter_hands_out_the_same(x: torch.Tensor) -> None:
    program = sg.export(handed_out_in_one_arm, (ONES,))
    assert program.unset_in_choices
    outputs = interpret(program, (x,))
    assert repr(compile_result(program.result, program.effects)(outputs, (x,), {})) == repr(handed_out_in_one_arm(x))


@pytest.mark.parametrize("x", [ONES, ZEROS, LESS], ids=str)
def test_so_does_a_file(x: torch.Tensor, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    sg.save(handed_out_in_one_arm, path, args=(ONES,))
    assert repr(loaded_source(path, "handed_out_in_one_arm")(x)) == repr(handed_out_in_one_arm(x))


def loaded_source(path: Path, name: str) -> Callable[..., Any]:
    module = loaded(path)
    return functools.partial(getattr(module, name))


def saved(x):
    if x.sum() > 0:
        t = x * 2
    y = t
    return x + 1


def saved_number(x):
    if x.sum() > 0:
        t = 3
    y = t
    return x * y


def saved_in_handler(x):
    if x.sum() > 0:
        t = x * 2
    try:
        y = t
    except UnboundLocalError:
        y = x - 1
    return y


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
@pytest.mark.parametrize("function", [saved, saved_number, saved_in_handler], ids=lambda function: function.__name__)
def test_files_raise_there_too(
    function: Callable[..., Any], suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"file{suffix}"
    sg.save(function, path, args=(ONES,))
    found = sg.load(path) if suffix == ".pt2" else loaded_source(path, function.__name__)
    for x in (ONES, LESS):
        assert outcome(found, x, capsys) == outcome(function, x, capsys)


def empty_in_a_loop(x):
    while x.sum() > 1:
        x = x / 2
        t = []
    return t


def test_what_nothing_tells_of_is_refused() -> None:
    with pytest.raises(sg.CaptureError, match="possibly unbound"):
        sg.to_static(empty_in_a_loop, backend="eager")(ONES)
