"""What notebooks show, and functions that are defined where there is no file: cells, the prompt, `exec`."""

from __future__ import annotations

import code
import linecache
import sys
import types
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.report import html as pages
from tests.unit.report import models

UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
CELL = """
def shrunk(x):
    return x / 2

def halve(x):
    while x.norm() > 1:
        x = shrunk(x)
    return x if x.sum() > 0 else x * 3
"""


def eager(x: torch.Tensor) -> torch.Tensor:
    while x.norm() > 1:
        x = x / 2
    return x if x.sum() > 0 else x * 3


# ---- what is shown
def test_a_program_shows_its_text_escaped() -> None:
    shown = sg.export(models.halve, (torch.ones(3, 4), torch.tensor(1.0)))._repr_html_()
    assert shown.startswith("<pre")
    assert "norm &gt; limit" in shown
    assert "norm > limit" not in shown


def test_an_explanation_shows_its_page_in_a_frame_of_its_own() -> None:
    explanation = sg.to_static(models.halve, backend="eager").explain(torch.ones(3, 4), torch.tensor(1.0))
    shown = explanation._repr_html_()
    assert shown.startswith('<iframe title="halve"')
    content = shown.partition('srcdoc="')[2].partition('"')[0]
    assert "&lt;html" in content
    assert "<" not in content


def test_an_explanation_is_text_where_jinja2_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    explanation = sg.to_static(models.halve, backend="eager").explain(torch.ones(3, 4), torch.tensor(1.0))
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert pages is not None
    shown = explanation._repr_html_()
    assert shown.startswith("<pre>")
    assert "while staged at" in shown


def test_a_plan_shows_its_text() -> None:
    static = sg.to_static(models.halve, full_graph=False, backend="eager")
    static(torch.ones(3, 4), torch.tensor(1.0))
    assert static.explain()._repr_html_().startswith("<pre>")


# ---- where there is no file
@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The namespace of a `__main__` of its own."""
    made = types.ModuleType("__made_main__")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return vars(made)


def check(static: Any) -> None:
    for x in (UP, DOWN, UP * 9, DOWN * 9):
        assert torch.equal(static(x), eager(x))
    assert static.cache_info().programs == 1


def test_a_cell_with_lines_in_linecache_is_shown_with_them(module: dict[str, Any]) -> None:
    name = "<ipython-input-1-stillgraph>"
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(keepends=True), name)
    try:
        exec(compile(CELL, name, "exec"), module)
        static = sg.to_static(module["halve"], backend="eager")
        check(static)
        marks = {line.text.strip(): line.mark for f in static.explain(UP).functions for line in f.lines}
        assert marks["while x.norm() > 1:"] == "staged"
        assert "def halve" in static.code
    finally:
        del linecache.cache[name]


def test_what_exec_makes_is_captured_from_its_bytecode(module: dict[str, Any]) -> None:
    exec(CELL, module)
    check(sg.to_static(module["halve"], backend="eager"))


def test_a_helper_that_a_cell_defines_anew_is_followed(module: dict[str, Any]) -> None:
    exec(CELL, module)
    static = sg.to_static(module["halve"], backend="eager")
    assert torch.equal(static(UP * 4), eager(UP * 4))
    exec("def shrunk(x):\n    return x / 1000", module)
    assert torch.equal(static(UP * 4), UP * 4 / 1000)


def test_at_the_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["import torch, stillgraph as sg", "@sg.to_static(backend='eager')", *FUNCTION.splitlines(), ""]
    lines += ["print(halve(torch.tensor([8.0])), halve(torch.tensor([-8.0])))", "print(halve.cache_info().programs)"]
    console = code.InteractiveConsole()
    for line in lines:
        console.push(line)
    assert capsys.readouterr().out.split("\n")[:2] == ["tensor([1.]) tensor([-3.])", "1"]


FUNCTION = """def halve(x):
    while x.norm() > 1:
        x = x / 2
    return x if x.sum() > 0 else x * 3
"""
